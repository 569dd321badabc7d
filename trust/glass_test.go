package trust

import (
	"strings"
	"testing"

	"muster/internal/serverkey"
	"muster/jobs"
)

// The one who ordered runs work alone if the order says that the glass is broken, they have signed it,
// and the rule of the host names them.
func TestGlassIsBrokenByThoseWhomTheRuleNames(t *testing.T) {
	t.Parallel()
	k := keysFrom(t, "i1234", 1)
	by := signersOf(t, k, map[byte]string{1: "os:ann,user:ann", 2: "os:bob"})
	for _, x := range []struct {
		name, reason, rule string
		signs              byte
		words              string // empty: it runs
	}{
		{"as it must be", "INC-7", `break_glass: ["user:ann"]`, 1, ""},
		{"no word of glass in the order", "", `break_glass: ["user:ann"]`, 1, "none of 2 people"},
		{"somebody whom the rule does not name", "INC-7", `break_glass: ["os:bob"]`, 1, "may not break the glass"},
		{"a rule without glass", "INC-7", "", 1, "may not break the glass"},
		{"not signed by the one who ordered", "INC-7", `break_glass: ["user:ann", "os:bob"]`, 2, "1 of 2 people"},
		{"signed by nobody", "INC-7", `break_glass: ["user:ann"]`, 0, "none of 2 people"},
	} {
		host := hostNamed("fw1")
		m := orderWith(t, Order{BreakGlass: x.reason}, jobs.Spec{Runbook: "exec", Operator: "os:ann"}, "fw1")
		list := []string{signedBy(t, k.Signer(serverkey.Orders), NamespaceOrder, m.order)}
		if x.signs > 0 {
			list = append(list, signedBy(t, personKey(x.signs), NamespaceOrder, m.order))
		}
		s, err := Examine(m.order, list, by)
		record, wrong := RecordOf(host)
		if err != nil || wrong != nil {
			t.Fatal(err, wrong)
		}
		d := Deed{Installation: "i1234", Job: jobs.NewID("0000000001", "fw1"), Zone: "default", Host: host,
			Record: record, Now: noon}
		rules := "  - {people: 2, " + x.rule + ", mode: require}"
		p := policyOf(t, strings.Replace(rules, ", ,", ",", 1))
		r := p.Judge(s, nil, d)
		missing, err := p.Short(s, []Deed{d})
		if err != nil || r.Refused() != (x.words != "") || (missing > 0) != r.Refused() ||
			r.Refused() && !strings.Contains(r.Why.Error(), x.words) || !r.Refused() && r.Broken != x.reason {
			t.Errorf("%s: %+v, %d missing, %v, want words with %q", x.name, r, missing, err, x.words)
		}
	}
}
