set -eu
for python in /usr/bin/python3 /usr/local/bin/python3; do
  [ -x "$python" ] || continue
  file=$("$python" -S -c 'import sysconfig; print(sysconfig.get_path("stdlib") + "/sitecustomize.py")')
  if [ -e "$file" ] && grep -q '^def _skerry' "$file"; then continue; fi
  cat /usr/local/lib/skerry/sitecustomize.py >>"$file"
  "$python" -m py_compile "$file"
done
