#!/bin/bash
# PostgreSQL under pgbench, and a session that holds what only its own memory has. start | check [deep] | mark TEXT
set -euo pipefail

bin=$(echo /usr/lib/postgresql/*/bin)
dir=/home/user/soak
export PGHOST=$dir/run PGUSER=soak PGDATABASE=soak
export PATH=$bin:$PATH LC_ALL=C.UTF-8

sql() { psql --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 --command "$1"; }

# Asks the session that stays: its answer comes in a file, because its output goes to nobody.
ask_holder() {
  rm -f "$dir/answer" "$dir/answer.new"
  printf "%s \\\\g %s\n\\\\! mv %s %s\n" "$1" "$dir/answer.new" "$dir/answer.new" "$dir/answer" >"$dir/holder.in"
  # Its own siblings may keep it from the processors for long.
  for _ in $(seq 1200); do
    [ ! -f "$dir/answer" ] || { cat "$dir/answer"; return; }
    sleep 0.05
  done
  echo "no answer"
}

start() {
  mkdir -p "$dir/run"
  initdb --data-checksums --no-sync --username=soak --auth=trust --no-locale --encoding=UTF8 -D "$dir/data" >"$dir/initdb.log"
  cat >>"$dir/data/postgresql.conf" <<-CONF
	listen_addresses = ''
	unix_socket_directories = '$dir/run'
	shared_buffers = 64MB
	max_connections = 20
	checkpoint_timeout = 30s
	autovacuum_naptime = 10s
	jit = off
	log_line_prefix = '%m '
	CONF
  setsid postgres -D "$dir/data" >>"$dir/postgres.log" 2>&1 </dev/null &
  echo $! >"$dir/postgres.pid"
  until pg_isready --quiet --dbname=postgres; do sleep 0.1; done
  createdb soak
  sql "CREATE TABLE fixed (id int PRIMARY KEY, data text) WITH (autovacuum_enabled = off);
       CREATE TABLE mark (value text);
       INSERT INTO fixed SELECT i, md5(random()::text) || md5(random()::text) || md5(random()::text) FROM generate_series(1, 100000) i;"
  sql "VACUUM (FREEZE, ANALYZE) fixed"
  pgbench --initialize --scale=2 --quiet >"$dir/pgbench-init.log" 2>&1
  sql "CHECKPOINT"
  mkfifo "$dir/holder.in"
  setsid sleep infinity >"$dir/holder.in" </dev/null 2>/dev/null &
  PGAPPNAME=holder setsid psql --no-psqlrc --quiet --tuples-only --no-align <"$dir/holder.in" >"$dir/holder.log" 2>&1 &
  ask_holder "CREATE TEMP TABLE secret AS SELECT i AS id, md5(random()::text) AS data FROM generate_series(1, 50000) i; SELECT pg_advisory_lock(42)" >/dev/null
  # What was said while it started (a role that waits for the server is told off) counts for nothing.
  : >"$dir/postgres.log"
  setsid pgbench --no-vacuum --client=4 --jobs=2 --time=2000000 --rate=100 >"$dir/pgbench.log" 2>&1 </dev/null &
  echo $! >"$dir/pgbench.pid"
}

check() {
  local problems=() count before memory held files identity sums
  kill -0 "$(cat "$dir/pgbench.pid")" || problems+=("pgbench ended: $(tail -n 1 "$dir/pgbench.log")")
  before=$(sql "SELECT count(*) FROM pgbench_history")
  count=$before
  for _ in $(seq 100); do
    count=$(sql "SELECT count(*) FROM pgbench_history")
    [ "$count" = "$before" ] || break
    sleep 0.1
  done
  [ "$count" != "$before" ] || problems+=("pgbench commits nothing any more")
  held=$(ask_holder "SELECT md5(string_agg(data, '' ORDER BY id)) || (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid()) FROM secret")
  memory=$(sql "SELECT md5(string_agg(data, '' ORDER BY id)) FROM fixed")
  files=$(sha256sum "$dir/data/$(sql "SELECT pg_relation_filepath('fixed')")" "$dir/data/$(sql "SELECT pg_relation_filepath('fixed_pkey')")" | sha256sum)
  # One statement: one moment.
  sums=$(sql "SELECT count(DISTINCT s) FROM (VALUES ((SELECT sum(abalance) FROM pgbench_accounts)), ((SELECT sum(tbalance) FROM pgbench_tellers)),
    ((SELECT sum(bbalance) FROM pgbench_branches)), ((SELECT coalesce(sum(delta), 0) FROM pgbench_history))) AS sums (s)")
  [ "$sums" = 1 ] || problems+=("accounts, tellers, branches and history have different sums")
  [ "$(sql "SELECT sum(checksum_failures) FROM pg_stat_database")" = 0 ] || problems+=("pages with wrong checksums were read")
  identity=$(sql "SELECT string_agg(application_name || pid || ' ' || extract(epoch FROM backend_start), ', ' ORDER BY pid)
    FROM pg_stat_activity WHERE application_name IN ('pgbench', 'holder')")
  if [ "${1-}" = deep ]; then
    pg_amcheck --install-missing --heapallindexed soak >"$dir/amcheck.log" 2>&1 || problems+=("pg_amcheck: $(tail -n 1 "$dir/amcheck.log")")
  fi
  # Time goes on while it is paused: a worker that was being started then is late, and the next one takes its place.
  mapfile -t -O "${#problems[@]}" problems < <(grep -hE 'PANIC|FATAL|ERROR|WARNING' "$dir/postgres.log" | grep -v 'autovacuum worker' | head -n 3)
  mapfile -t -O "${#problems[@]}" problems < <(grep -hiE 'error|fatal|abort' "$dir/pgbench.log" | head -n 3)
  psql --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 \
    --set identity="$(cat "$dir/postgres.pid" "$dir/pgbench.pid" | xargs) $identity" --set memory="$memory $held" --set files="${files%% *}" \
    --set ticks="$count" --set random="$(od -An -tx1 -N16 /dev/urandom | tr -d ' ')" --set problems="$(printf '%s\n' "${problems[@]}")" <<-'SQL'
	SELECT json_build_object('identity', :'identity', 'memory', :'memory', 'files', :'files', 'ticks', :ticks,
	  'clockMs', extract(epoch FROM clock_timestamp()) * 1000, 'random', :'random',
	  'mark', coalesce((SELECT string_agg(value, ' ') FROM mark), ''),
	  'problems', array_remove(string_to_array(trim(:'problems', E'\n'), E'\n'), ''));
	SQL
}

case $1 in
  start) start ;;
  check) check "${2-}" ;;
  mark) sql "INSERT INTO mark VALUES ('$2')" ;;
esac
