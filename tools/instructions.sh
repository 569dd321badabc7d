#!/bin/sh
# Counts what a job costs inside Redis' main thread in instructions, which the load of
# the machine does not change: BenchmarkStep at two sizes with redis-server under
# callgrind and etc/redis.conf, and the difference. Needs valgrind. A share is told for each name given
# that redis-server exports, such as lua_pcall; "call'2" are the commands themselves.
#
# usage: tools/instructions.sh [NAME…]
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
cat >"$work/bin/redis-server" <<END
#!/bin/sh
exec valgrind --tool=callgrind --toggle-collect=fcallCommand \\
	--callgrind-out-file=$work/out.%p $(command -v redis-server) $PWD/etc/redis.conf "\$@" 2>/dev/null
END
chmod +x "$work/bin/redis-server"
go test -c -o "$work/test" ./jobs/queue

# count SLOTS JOBS NAME…: the instructions of a run, in all and below each name.
count() {
	slots=$1 jobs=$2
	shift 2
	rm -f "$work"/out.*
	(cd jobs/queue && PATH="$work/bin:$PATH" "$work/test" -test.run '^$' \
		-test.bench "Step/$slots\$" -test.benchtime "${jobs}x" >"$work/log" 2>&1) || {
		cat "$work/log" >&2
		exit 1
	}
	# The benchmark runs once with one job before it runs with all.
	out=$(ls -S "$work"/out.* | head -n 1)
	callgrind_annotate --inclusive=yes --threshold=100 "$out" 2>/dev/null >"$work/all"
	for name in TOTALS "$@"; do
		tr -d , <"$work/all" | grep -m 1 -w -F -- "$name" | awk '{print $1}'
	done
}

for slots in 1 16; do
	few=320 many=$((320 * 4)) # twenty parts of 17 and of 65 jobs, or of 32 and of 80
	count $slots $few "$@" >"$work/few"
	count $slots $many "$@" >"$work/many"
	part=$(((many / 20 + slots) / slots * slots - (few / 20 + slots) / slots * slots))
	printf '%s\n' all "$@" | paste "$work/few" "$work/many" - | while read -r a b name; do
		echo "$slots a call: $(((b - a) / (20 * part))) $name"
	done
done
