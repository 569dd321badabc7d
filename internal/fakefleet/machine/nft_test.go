package machine

import (
	"strings"
	"testing"
)

// The rules of a pretended machine, as far as the runbook of a firewall uses them.
func TestNft(t *testing.T) {
	t.Parallel()
	const good = `table inet filter {
	chain input {
		type filter hook input priority 0; policy drop;
		tcp dport 22 jump admins
	}
	chain admins {
		accept
	}
}
`
	for _, tt := range []struct {
		name, file, line string
		code             int
		want, rules      string
	}{
		{name: "none at first", line: "nft list ruleset"},
		{name: "in force", file: good, line: "nft -f /tmp/r; nft list ruleset", want: good, rules: good},
		{name: "only checked", file: good, line: "nft -c -f /tmp/r"},
		{name: "taken back", file: good,
			line: "nft list ruleset >/tmp/old; nft -f /tmp/r; nft -f /tmp/old; nft flush ruleset"},
		{name: "there twice without a flush", file: "table ip a {\n\tchain b {\n\t}\n}\n",
			line:  "nft -f /tmp/r; nft -f /tmp/r",
			rules: "table ip a {\n\tchain b {\n\t}\n\tchain b {\n\t}\n}\n"},
		{name: "once with one", file: "flush ruleset\n# all of them\ntable ip a {\n\tchain b {\n\t}\n}\n",
			line: "nft -f /tmp/r; nft -f /tmp/r", rules: "table ip a {\n\tchain b {\n\t}\n}\n"},
		{name: "not closed", file: "table ip a {\n", line: "nft -f /tmp/r", code: 1, want: "unexpected end of file"},
		{name: "closed too often", file: "}\n", line: "nft -f /tmp/r", code: 1,
			want: "/tmp/r:1: Error: syntax error, unexpected '}'"},
		{name: "no rules at all", file: "hello\n", line: "nft -f /tmp/r", code: 1,
			want: "/tmp/r:1: Error: syntax error, unexpected hello"},
		{name: "a chain that is missing", file: "table ip a {\n\tchain b {\n\t\tjump c\n\t}\n}\n",
			line: "nft -c -f /tmp/r", code: 1, want: "No such file or directory: c"},
		{name: "no file", line: "nft -f /tmp/none", code: 1, want: "could not open /tmp/none"},
		{name: "more than it knows", line: "nft add table x", code: 1, want: "more than this nft knows"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := pretend()
			got := m.script(t, "cat >/tmp/r; "+tt.line, tt.file)
			if said := got.out + got.err; got.code != tt.code || !strings.Contains(said, tt.want) {
				t.Errorf("%s: exit %d, %q, want %d, %q", tt.line, got.code, said, tt.code, tt.want)
			}
			if got := m.Rules(); got != tt.rules {
				t.Errorf("rules\n%s\nwant\n%s", got, tt.rules)
			}
		})
	}
}
