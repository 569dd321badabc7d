package complete

import (
	"strings"
	"testing"

	"muster/fleet"
)

func TestSelectorWords(t *testing.T) {
	t.Parallel()
	hosts := []fleet.Host{
		{Name: "fw1", Zone: "default", Customer: "acme", Labels: map[string]string{"role": "fw", "site": "x"}},
		{Name: "fw2", Zone: "eu", Labels: map[string]string{"role": "fw", "drained": ""}},
		{Name: "vpn1", Zone: "eu", Labels: map[string]string{"role": "vpn"}},
	}
	for _, c := range []struct{ typed, want string }{
		{"", "all customer= fw1 fw2 role= site= vpn1 zone="},
		{"f", "fw1 fw2"},
		{"fw1", ""},
		{"fw1,", "fw1,all fw1,fw1 fw1,fw2 fw1,vpn1"},
		{"all!v", "all!vpn1"},
		{"fw1&f", "fw1&fw1 fw1&fw2"},
		{"fw[1-", ""},
		{"fw[1-2],v", "fw[1-2],vpn1"},
		{"role=", "role=fw role=vpn"},
		{"role=v", "role=vpn"},
		{"role==v", "role==vpn"},
		{"role!=v", "role!=vpn"},
		{"role=fw,", "role=fw,customer= role=fw,drained role=fw,role= role=fw,site= role=fw,zone="},
		{"role=fw,zone=e", "role=fw,zone=eu"},
		{"role=fw,!s", "role=fw,!site"},
		{"!", "!customer !drained !role !site !zone"},
		{"role=fw,d", "role=fw,drained"},
		{"role in (fw,", ""},
		{"fw1&{", "fw1&{customer= fw1&{drained fw1&{role= fw1&{site= fw1&{zone="},
		{"{role=vpn}!f", "{role=vpn}!fw1 {role=vpn}!fw2"},
		{"nosuch=", ""},
	} {
		if got := strings.Join(selectorWords(c.typed, hosts), " "); got != c.want {
			t.Errorf("%q: %q, want %q", c.typed, got, c.want)
		}
	}
}
