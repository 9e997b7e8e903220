# Rules for headers with the official SDK. The host of the rule is never asked, because its secret does not exist.
from e2b import Sandbox, Secret

HOST = "api.example.test"


def main():
    transform = {"headers": {"Authorization": f"Bearer {Secret.fill('no-such-secret')}"}}
    rules = {HOST: [{"transform": transform}]}
    with Sandbox.create(network={"rules": rules}) as sandbox:
        shown = sandbox.get_info().network
        assert shown["rules"] == rules, shown
        sandbox.commands.run(f"echo 192.0.2.1 {HOST} >> /etc/hosts", user="root")
        curl = f"curl -sS --max-time 60 -w ' %{{http_code}}' https://{HOST}/"
        answer = sandbox.commands.run(curl).stdout
        assert answer.endswith("502") and "does not exist" in answer, answer
        sandbox.update_network({"allow_out": ["192.0.2.9"]})
        shown = sandbox.get_info().network
        assert "rules" not in shown, shown
        sandbox.update_network({"rules": rules})
        answer = sandbox.commands.run(curl).stdout
        assert answer.endswith("502") and "does not exist" in answer, answer
    print("all well")


main()
