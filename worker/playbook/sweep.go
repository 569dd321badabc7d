package playbook

import "muster/fleet"

// remoteFolder returns the folder in ~/.ansible of a host in which the modules of its plays are.
// The processes of a play are found by it, because it stands in their command line. It has the name
// of the host, because two hosts of an inventory may be one machine.
func remoteFolder(host string) string { return "muster-" + host }

// The exit codes of Sweep.
const (
	SweptAll  = 0 // nothing of a play runs on the host
	SweptSome = 1 // a part of it runs on
)

// Sweep returns a shell text that ends what a killed play has left on its host, and reports whether
// nothing of it is left. It finds the modules by their path, and all that they have started. The
// path stands in the text in two parts, so that the text does not find itself.
func Sweep(host string) string {
	if fleet.CheckName(host) != nil {
		return "exit 3" // no host has such a name
	}
	return "name=" + host + `
left() {
	ps -e -o pid= -o ppid= -o args= | awk -v a=/.ansible/muster -v b="-$name/" '
		{ pid[NR] = $1; parent[NR] = $2; if (index($0, a b)) hit[$1] = 1 }
		END {
			do {
				more = 0
				for (i = 1; i <= NR; i++)
					if ((parent[i] in hit) && !(pid[i] in hit)) { hit[pid[i]] = 1; more = 1 }
			} while (more)
			for (p in hit) print p
		}'
}
ps -e -o pid= -o ppid= -o args= >/dev/null 2>&1 && command -v awk >/dev/null || exit 3
how=-TERM
for try in 1 2 3 4 5 6 7 8; do
	all=$(left) || exit 3
	if [ -z "$all" ]; then
		rm -rf ~/.ansible/"muster-$name"/ansible-tmp-*
		exit 0
	fi
	kill $how $all 2>/dev/null
	[ "$try" -lt 3 ] || how=-KILL
	sleep 0.3 2>/dev/null || sleep 1
done
exit 1
`
}
