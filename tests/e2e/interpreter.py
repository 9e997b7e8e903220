# Programs of the code interpreter's client from PyPI.
from e2b_code_interpreter import Sandbox
from e2b_code_interpreter.charts import BarChart

sandbox = Sandbox.create(envs={"GIVEN": "at creation"})
try:
    assert sandbox.run_code("x = 20").error is None
    printed = []
    run = sandbox.run_code("print('é'); x + 1", on_stdout=printed.append)
    # The kernel sends its output in pieces of any size.
    output = "".join(piece.line for piece in printed)
    assert run.text == "21" and output == "é\n" and printed[0].timestamp, (run, printed)
    assert sandbox.run_code("import os; os.environ['GIVEN'] + os.environ['MORE']", envs={"MORE": "!"}).text == "at creation!"
    assert sandbox.run_code("1 / 0").error.name == "ZeroDivisionError"
    assert sandbox.run_code("[1, 2].map(n => n * 2).join()", language="javascript").text == "2,4"
    (result,) = sandbox.run_code("import matplotlib.pyplot as plt; plt.bar(['a', 'b'], [3, 4]); plt.title('T'); plt.show()").results
    assert result.png and isinstance(result.chart, BarChart) and result.chart.elements[1].value == 4, result.chart
    context = sandbox.create_code_context(cwd="/root")
    assert sandbox.run_code("os_cwd = __import__('os').getcwd(); os_cwd", context=context).text == "/root"
    assert sandbox.list_code_contexts()[-1].id == context.id
    sandbox.restart_code_context(context)
    assert sandbox.run_code("os_cwd", context=context).error.name == "NameError"
    sandbox.remove_code_context(context)
    (frame,) = sandbox.run_code("import pandas; pandas.DataFrame({'n': [1, 2]})").results
    assert frame.data == {"n": [1, 2]} and "<table" in frame.html, frame
finally:
    sandbox.kill()
print("all well")
