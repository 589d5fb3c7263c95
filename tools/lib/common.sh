# What the scripts in tools/ share. Source it; it defines functions and `root`, and changes nothing else.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# The model that the quick start, the tests and the benches use.
model_name=SmolLM2-135M-Instruct.Q4_1.gguf
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
model_bytes=98362432
model_path=$root/models/$model_name

# A second one for the tests.
gemma_name=gemma-3-270m-q4_k_m.gguf
gemma_sha256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
gemma_bytes=253113024
gemma_path=$root/models/$gemma_name

step() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# need_space MEGABYTES FOLDER: fails in one sentence if the disk is too full.
need_space() {
  local free
  free=$(df -Pm "$2" | awk 'NR == 2 {print $4}')
  [ "$free" -ge "$1" ] || die "$1 MB of free disk are needed in $2 and $free MB are there; make room and run this again"
}

# need_writable PATH ...: fails in one sentence if one of them can be neither written nor made.
need_writable() {
  local path place
  for path in "$@"; do
    place=$path
    while [ ! -e "$place" ]; do place=$(dirname "$place"); done
    [ -w "$place" ] \
      || die "$place cannot be written by $(id -un 2>/dev/null || id -u); use a checkout of your own, or give this one to that user"
  done
}

# python_with MODULE: the first Python that can import the module.
python_with() {
  local candidate
  for candidate in /usr/bin/python3 python3; do
    if "$candidate" -c "import $1" 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  return 1
}
