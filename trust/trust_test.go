package trust

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/fleet"
	"muster/internal/serverkey"
	"muster/internal/sshsig"
	"muster/jobs"
)

// noon is the time of the tests.
var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// keysFrom returns the key of an installation's servers that begins with a byte.
func keysFrom(t testing.TB, installation string, first byte) serverkey.Keys {
	t.Helper()
	k, err := serverkey.Parse([]byte(serverkey.File(installation, [serverkey.Size]byte{first})))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// personKey returns a key of a person, by a number.
func personKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), n))
}

// signersOf returns the servers with a key, and people by number: the lines have %d for their keys.
func signersOf(t testing.TB, k serverkey.Keys, people map[byte]string) Signers {
	t.Helper()
	text, err := sshsig.KeyText(k.Publics(serverkey.Orders)[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := SignerLine(k.Installation(), text) + "\n"
	for n, before := range people {
		key, err := sshsig.KeyText(personKey(n).Public().(ed25519.PublicKey))
		if err != nil {
			t.Fatal(err)
		}
		lines += before + " " + key + "\n"
	}
	allowed, err := sshsig.ParseAllowed([]byte(lines))
	if err != nil {
		t.Fatal(err)
	}
	return Signers{allowed, noon}
}

func hostNamed(name string) fleet.Host {
	return fleet.Host{Name: name, Address: "192.0.2.1", Port: 22, User: "root", Zone: "default",
		Customer: "acme", Group: "g1", HostKeys: []string{"ssh-ed25519 AAAA"}, Labels: map[string]string{"role": "fw"}}
}

// made is an order with its lines.
type made struct {
	order []byte
	lines Lines
}

func orderFor(t testing.TB, spec jobs.Spec, hosts ...string) made {
	t.Helper()
	return orderWith(t, Order{}, spec, hosts...)
}

// orderWith is orderFor for an order with further fields.
func orderWith(t testing.TB, o Order, spec jobs.Spec, hosts ...string) made {
	t.Helper()
	var list []fleet.Host
	for _, name := range hosts {
		list = append(list, hostNamed(name))
	}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	o.Installation, o.Task, o.NotBefore, o.NotAfter = "i1234", "0000000001", noon, noon.Add(time.Hour)
	o.Spec = text
	order, lines, err := New(o, list, RecordOf)
	if err != nil {
		t.Fatal(err)
	}
	return made{order, lines}
}

func signedBy(t testing.TB, key ed25519.PrivateKey, namespace string, message []byte) string {
	t.Helper()
	text, err := sshsig.SignEd25519(key, namespace, message)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// policyOf reads a policy of these rules.
func policyOf(t testing.TB, rules string) *Policy {
	t.Helper()
	p, err := ParsePolicy(fleet.Source{Name: "policy.yaml", Data: []byte("rules:\n" + rules)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAnOrderCoversWhatWasSigned(t *testing.T) {
	t.Parallel()
	k := keysFrom(t, "i1234", 1)
	by := signersOf(t, k, nil)
	m := orderFor(t, jobs.Spec{Runbook: "exec", Operator: "os:ann"}, "fw1", "fw2")
	server := signedBy(t, k.Signer(serverkey.Orders), NamespaceOrder, m.order)
	s, err := Examine(m.order, []string{server}, by)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Server || len(s.People) != 0 || s.Spec.Runbook != "exec" || s.Hash != HashOf(m.order) {
		t.Errorf("examined: %+v", s)
	}
	share, _ := s.Order.ShareOf("default", "fw1")
	records, err := s.Order.Share("default", share, m.lines["default"][share])
	if err != nil {
		t.Fatal(err)
	}
	right := Deed{Installation: "i1234", Job: "0000000001:fw1", Zone: "default", Host: hostNamed("fw1"),
		Record: records["fw1"], Now: noon}
	for _, x := range []struct {
		name   string
		change func(*Deed)
		words  string // empty: it is covered
	}{
		{"as it was signed", func(*Deed) {}, ""},
		{"a clock that is a bit behind", func(d *Deed) { d.Now = noon.Add(-skew) }, ""},
		{"another installation", func(d *Deed) { d.Installation = "i9999" }, `installation "i1234"`},
		{"another task", func(d *Deed) { d.Job = "0000000002:fw1" }, "the order of task 0000000001"},
		{"a host without a record", func(d *Deed) { d.Record = "" }, "not for host fw1"},
		{"another record", func(d *Deed) { d.Host.Port = 23 }, "not as it was signed"},
		{"the record of another host", func(d *Deed) { d.Host.Name = "fw2" }, `has the host as "fw2"`},
		{"another zone", func(d *Deed) { d.Zone = "moon" }, `in zone "default"`},
		{"too early", func(d *Deed) { d.Now = noon.Add(-skew - time.Second) }, "begins at 2026-11-28T12:00:00Z"},
		{"at its end", func(d *Deed) { d.Now = noon.Add(time.Hour) }, ""},
		{"too late", func(d *Deed) { d.Now = noon.Add(time.Hour + 1) }, "submit the task anew"},
		{"a job half way", func(d *Deed) { d.Now, d.Continues = noon.Add(2*time.Hour), true }, ""},
		{"a job half way for too long", func(d *Deed) {
			d.Now, d.Continues = noon.Add(2*time.Hour+Validity), true
		}, "ended at"},
		{"a question after the end", func(d *Deed) { d.Now, d.Asks = noon.Add(1000*time.Hour), true }, ""},
		{"a question to another address", func(d *Deed) { d.Asks, d.Host.Address = true, "192.0.2.2" },
			"not as it was signed"},
	} {
		d := right
		x.change(&d)
		switch err := s.Covers(d); {
		case err == nil && x.words != "":
			t.Errorf("%s: covered", x.name)
		case err != nil && (x.words == "" || !strings.Contains(err.Error(), x.words)):
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

// Each field that a node knows of a host is in its record.
func TestARecordHasEachFieldOfAHost(t *testing.T) {
	t.Parallel()
	was, err := RecordOf(fleet.Host{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{was: "no field"}
	var walk func(path string, v reflect.Value, whole func() fleet.Host)
	walk = func(path string, v reflect.Value, whole func() fleet.Host) {
		for i := range v.NumField() {
			field, name := v.Field(i), path+v.Type().Field(i).Name
			before := reflect.ValueOf(field.Interface())
			switch field.Kind() {
			case reflect.String:
				field.SetString("x")
			case reflect.Int:
				field.SetInt(1)
			case reflect.Map:
				field.Set(reflect.ValueOf(map[string]string{"a": "b"}))
			case reflect.Struct:
				walk(name+".", field, whole)
				continue
			case reflect.Slice:
				field.Set(reflect.MakeSlice(field.Type(), 1, 1))
			default:
				t.Fatalf("%s is of kind %s", name, field.Kind())
			}
			record, err := RecordOf(whole())
			if err != nil {
				t.Fatal(err)
			}
			if other, twice := seen[record]; twice {
				t.Errorf("a change of %s gives the record of %s", name, other)
			}
			seen[record] = name
			field.Set(before)
		}
	}
	h := &fleet.Host{}
	walk("", reflect.ValueOf(h).Elem(), func() fleet.Host { return *h })
	// A field that is added later must not change the records of hosts without it.
	text, err := json.Marshal(fleet.Host{})
	if err != nil || string(text) != `{"name":"","address":"","port":0,"user":"","host_keys":null,`+
		`"zone":"","fence":""}` {
		t.Errorf("an empty host is %s, %v: nodes of another version would refuse all hosts", text, err)
	}
}

func TestSignaturesCountOnceAPerson(t *testing.T) {
	t.Parallel()
	k := keysFrom(t, "i1234", 1)
	by := signersOf(t, k, map[byte]string{1: "os:ann,user:ann", 2: "user:bob", 3: "user:bob,bob@acme",
		4: `user:cy valid-before="20261101"`, 5: `user:dan namespaces="git"`, 6: "user:eve"})
	m := orderFor(t, jobs.Spec{Runbook: "firmware", Operator: "os:ann"}, "fw1")
	sign := func(n byte) string { return signedBy(t, personKey(n), NamespaceOrder, m.order) }
	server := signedBy(t, k.Signer(serverkey.Orders), NamespaceOrder, m.order)
	for _, x := range []struct {
		name       string
		signatures []string
		level      Level
		words      string // empty: it is enough
	}{
		{"a server, for the word of a server", []string{server}, Level{}, ""},
		{"a person, for the word of a server", []string{sign(2)}, Level{}, ""},
		{"a server, for the word of a person", []string{server}, Level{Person: true}, "no person has signed"},
		{"the one who ordered, for a person", []string{server, sign(1)}, Level{Person: true}, ""},
		{"the one who ordered, for two", []string{server, sign(1)}, Level{People: 2},
			"none of 2 people have signed it; os:ann ordered it, so that signature does not count"},
		{"the same signature twice", []string{server, sign(2), sign(2)}, Level{People: 2}, "1 of 2 people"},
		{"two keys of one person", []string{server, sign(2), sign(3)}, Level{People: 2}, "1 of 2 people"},
		{"two people", []string{server, sign(2), sign(6)}, Level{People: 2}, ""},
		{"a key whose time is over", []string{server, sign(2), sign(4)}, Level{People: 2}, "signature 3: "},
		{"a key for something else", []string{server, sign(2), sign(5)}, Level{People: 2}, "signature 3: "},
		{"a key of nobody", []string{server, sign(2), sign(9)}, Level{People: 2}, "signature 3: "},
		{"a signature for something else", []string{server, sign(2),
			signedBy(t, personKey(6), NamespaceGate, m.order)}, Level{People: 2}, "signature 3: "},
	} {
		s, err := Examine(m.order, x.signatures, by)
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		switch err := s.Meets(x.level); {
		case err == nil && x.words != "":
			t.Errorf("%s: enough", x.name)
		case err != nil && (x.words == "" || !strings.Contains(err.Error(), x.words)):
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

func TestWhatNobodyHasSignedIsNotRead(t *testing.T) {
	t.Parallel()
	k := keysFrom(t, "i1234", 1)
	by := signersOf(t, k, nil)
	sign := func(order string) string {
		return signedBy(t, k.Signer(serverkey.Orders), NamespaceOrder, []byte(order))
	}
	right := string(orderFor(t, jobs.Spec{}, "fw1").order)
	for _, x := range []struct{ name, order, words string }{
		{"nothing", "", "the task has no signed order"},
		{"no JSON", "x", "it is no order"},
		{"another form", strings.Replace(right, `"order":1`, `"order":2`, 1), "its form is 2, and this node knows 1"},
		{"more than is known", strings.Replace(right, `"order":1`, `"order":1,"only_if":"x"`, 1), "unknown field"},
		{"two of them", right + right, "there is more behind it"},
		{"too long", strings.Replace(right, "2026-11-28T13", "2026-12-28T13", 1), "it is good from"},
		{"no end", strings.Replace(right, "2026-11-28T13", "2026-11-28T11", 1), "it is good from"},
	} {
		if _, err := Examine([]byte(x.order), []string{sign(x.order)}, by); err == nil ||
			!strings.Contains(err.Error(), x.words) {
			t.Errorf("%s: %v, want %q", x.name, err, x.words)
		}
	}
	if _, err := Examine([]byte("x"), []string{sign(right)}, by); err == nil ||
		strings.Contains(err.Error(), "no order that") {
		t.Errorf("bytes that nobody signed were read: %v", err)
	}
}

func TestTheFirstRuleThatFitsCounts(t *testing.T) {
	t.Parallel()
	k := keysFrom(t, "i1234", 1)
	by := signersOf(t, k, map[byte]string{1: "user:ann", 2: "user:bob"})
	p := policyOf(t, `
  - {runbooks: [firm*], hosts: customer=acme, people: 1, mode: require}
  - {hosts: "fw[1-3]", level: person, mode: warn}
  - {runbooks: [facts], mode: off}
  - {level: server, mode: require}
`)
	server := func(m made) string { return signedBy(t, k.Signer(serverkey.Orders), NamespaceOrder, m.order) }
	for _, x := range []struct {
		runbook, host string
		more          []byte // people who sign, too
		mode          Mode
		holds         bool
	}{
		{"firmware", "fw1", nil, Require, false},
		{"firmware", "fw1", []byte{2}, Require, true},
		{"exec", "fw1", nil, Warn, false},
		{"exec", "fw1", []byte{1}, Warn, true},
		{"facts", "fw9", nil, Off, true},
		{"exec", "fw9", nil, Require, true},
	} {
		m := orderFor(t, jobs.Spec{Runbook: x.runbook, Operator: "user:ann"}, x.host)
		list := []string{server(m)}
		for _, n := range x.more {
			list = append(list, signedBy(t, personKey(n), NamespaceOrder, m.order))
		}
		s, err := Examine(m.order, list, by)
		record, _ := RecordOf(hostNamed(x.host))
		r := p.Judge(s, err, Deed{Installation: "i1234", Job: jobs.NewID("0000000001", x.host),
			Zone: "default", Host: hostNamed(x.host), Record: record, Now: noon})
		if r.Mode != x.mode || (r.Why == nil) != x.holds {
			t.Errorf("%s on %s by %v: %s, %v", x.runbook, x.host, x.more, r.Mode, r.Why)
		}
	}
	// The strictest rule judges what has no proof, whatever it says of itself.
	if r := p.Judge(nil, fmt.Errorf("no"), Deed{}); !r.Refused() {
		t.Errorf("without any proof: %+v", r)
	}
	for rules, want := range map[string]Mode{"  - {mode: off}\n": Off,
		"  - {runbooks: [x], level: server, mode: warn}\n  - {mode: off}\n": Warn,
		"  - {runbooks: [x], mode: off}\n":                                  Require} {
		if r := policyOf(t, rules).Judge(nil, fmt.Errorf("no"), Deed{}); r.Mode != want {
			t.Errorf("%s: %s, want %s", rules, r.Mode, want)
		}
	}
}

func TestMistakesInAPolicyAreSaidAtOnce(t *testing.T) {
	t.Parallel()
	text := `rules:
  - {runbooks: firmware, level: server, mode: require}
  - {hosts: "a and (", level: person, mode: warn}
  - {people: 0, mode: require}
  - {people: 2, level: person, mode: require}
  - {level: everybody, mode: strict}
  - {level: server}
  - {mode: warn}
  - {levels: server, mode: off}
  - {mode: off}
  - {mode: off}
  - x
  - {level: server, break_glass: [os:ann], mode: warn}
  - {people: 2, break_glass: [server:x], mode: warn}
  - {people: 2, break_glass: os:ann, mode: warn}
`
	_, err := ParsePolicy(fleet.Source{Name: "policy.yaml", Data: []byte(text)})
	if err == nil {
		t.Fatal("it was accepted")
	}
	for _, want := range []string{
		"policy.yaml:2: runbooks: want a list", "policy.yaml:3: hosts: ", "policy.yaml:4: people: want a number from 1",
		"policy.yaml:5: people and level: want one of them", `policy.yaml:6: level "everybody": want server or person`,
		`policy.yaml:6: mode "strict": want off, warn or require`, "policy.yaml:7: mode is missing",
		"policy.yaml:8: level is missing", `policy.yaml:9: a rule: unknown key "levels"`,
		"policy.yaml:11: this rule never counts: the rule at line 10 fits every job",
		"policy.yaml:12: a rule: want a mapping", "policy.yaml:13: break_glass: nothing is to be broken",
		`policy.yaml:14: break_glass: "server:x": want the name of a person`, "policy.yaml:15: break_glass: want a list",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
	for _, text := range []string{"", "rules: []\n", "rules: x\n", "[]", "rule: []", "\tx"} {
		if _, err := ParsePolicy(fleet.Source{Name: "p", Data: []byte(text)}); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add([]byte("rules: [{runbooks: [a], hosts: b, people: 2, mode: require}, {mode: off}]"))
	f.Add([]byte("rules: {a: b}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParsePolicy(fleet.Source{Name: "p", Data: data})
		if (p == nil) != (err != nil) || err == nil && len(p.Rules()) == 0 {
			t.Errorf("%+v, %v", p, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"order":1,"not_before":"2026-11-28T12:00:00Z","not_after":"2026-11-28T13:00:00Z",` +
		`"zones":[{"zone":"a",` +
		`"hosts":1,"shares":["x"]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := Parse(data)
		if err != nil {
			return
		}
		for _, z := range o.Zones {
			share, ok := o.ShareOf(z.Name, "fw1")
			if ok && share >= len(o.zone(z.Name).Shares) {
				t.Errorf("share %d of %d", share, len(z.Shares))
			}
			o.Share(z.Name, share, "fw1 x\n")
		}
	})
}

// Whatever a node sealed, a node finds it right for this job and step, and wrong for any other.
func TestAStateIsOfOneJobAndStep(t *testing.T) {
	t.Parallel()
	k, other := keysFrom(t, "i1234", 1), keysFrom(t, "i1234", 2)
	rapid.Check(t, func(t *rapid.T) {
		s := State{Job: jobs.NewID("0000000001", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "host")),
			Step:  rapid.IntRange(0, 3).Draw(t, "step"),
			Saved: rapid.SampledFrom([]string{"", "{}", `{"saved":{"a":"b"}}`}).Draw(t, "saved")}
		sealed := State{s.Job, s.Step, s.Seal(k, noon)}
		if err := sealed.Check(k, noon.Add(Validity)); err != nil {
			t.Fatalf("%+v: %v", sealed, err)
		}
		if sealed.Saved != "" && !json.Valid([]byte(sealed.Saved)) {
			t.Fatalf("no JSON: %s", sealed.Saved)
		}
		again := (State{s.Job, s.Step + 1, sealed.Saved}).Seal(k, noon)
		if sealed.Saved != "" && again != sealed.Saved {
			t.Fatalf("a node vouched for what it passed on: %s", again)
		}
		if s.fresh() {
			return
		}
		for name, wrong := range map[string]State{
			"another job":   {"0000000001:c", s.Step, sealed.Saved},
			"another step":  {s.Job, s.Step + 1, sealed.Saved},
			"other data":    {s.Job, s.Step, strings.Replace(sealed.Saved, "}", `,"x":1}`, 1)},
			"no MAC":        {s.Job, s.Step + 1, s.Saved},
			"half a MAC":    {s.Job, s.Step, sealed.Saved[:len(macBegins)+3]},
			"another nodes": {s.Job, s.Step, s.Seal(other, noon)},
		} {
			if wrong.Check(k, noon) == nil {
				t.Fatalf("%s: taken: %+v", name, wrong)
			}
		}
		if sealed.Check(k, noon.Add(Validity+time.Hour)) == nil {
			t.Fatal("a state of the week before last was taken")
		}
	})
}

func TestSharesHaveEveryHostOnce(t *testing.T) {
	t.Parallel()
	var hosts []fleet.Host
	for i := range 3000 {
		h := hostNamed(fmt.Sprint("fw", i))
		h.Zone = []string{"east", "west"}[i%2]
		hosts = append(hosts, h)
	}
	order, lines, err := New(Order{NotBefore: noon, NotAfter: noon.Add(time.Hour), Spec: []byte("{}")}, hosts, RecordOf)
	if err != nil {
		t.Fatal(err)
	}
	o, err := Parse(order)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Zones) != 2 || o.Zones[0].Hosts != 1500 || len(lines["east"]) != 4 || len(order) > 1000 {
		t.Errorf("an order of %d bytes: %+v", len(order), o)
	}
	for _, h := range hosts {
		share, _ := o.ShareOf(h.Zone, h.Name)
		records, err := o.Share(h.Zone, share, lines[h.Zone][share])
		if record, _ := RecordOf(h); err != nil || records[h.Name] != record {
			t.Fatalf("%s: %q, %v", h.Name, records[h.Name], err)
		}
	}
	if _, err := o.Share("east", 0, lines["west"][0]); err == nil {
		t.Error("the lines of another zone were taken")
	}
	if _, ok := o.ShareOf("moon", "fw1"); ok {
		t.Error("a zone that the order does not have has a share")
	}
}

func TestOnlyServersRenewAndOnlyTheirOwn(t *testing.T) {
	t.Parallel()
	k := keysFrom(t, "i1234", 1)
	m := orderFor(t, jobs.Spec{}, "fw1")
	server := signedBy(t, k.Signer(serverkey.Orders), NamespaceOrder, m.order)
	end := noon.Add(time.Hour)
	renewed, signature, err := Renew(m.order, []string{server}, k, end.Add(-time.Minute))
	if err != nil || renewed == nil {
		t.Fatalf("%s, %v", renewed, err)
	}
	s, err := Examine(renewed, []string{signature}, signersOf(t, k, nil))
	if err != nil || !s.Order.NotAfter.Equal(end.Add(-time.Minute).Add(Validity)) ||
		!slices.EqualFunc(s.Order.Zones, []Zone{s.Order.Zones[0]}, func(a, b Zone) bool { return reflect.DeepEqual(a, b) }) {
		t.Errorf("renewed: %+v, %v", s, err)
	}
	if again, _, err := Renew(renewed, []string{signature}, k, end); err != nil || again != nil {
		t.Errorf("an order with a far end: %s, %v", again, err)
	}
	person := signedBy(t, personKey(1), NamespaceOrder, m.order)
	for name, list := range map[string][]string{"nobody": nil, "a person": {person}, "both": {server, person}} {
		if got, _, err := Renew(m.order, list, k, end); err == nil {
			t.Errorf("an order signed by %s was renewed: %s", name, got)
		}
	}
	if _, _, err := Renew(m.order, []string{server}, keysFrom(t, "i1234", 2), end); err == nil {
		t.Error("an order of other servers was renewed")
	}
}

func BenchmarkExamine(b *testing.B) {
	k := keysFrom(b, "i1234", 1)
	by := signersOf(b, k, nil)
	names := make([]string, 400)
	for i := range names {
		names[i] = fmt.Sprint("fw", i)
	}
	m := orderFor(b, jobs.Spec{Runbook: "exec", Action: []byte(`{"steps":[]}`)}, names...)
	list := []string{signedBy(b, k.Signer(serverkey.Orders), NamespaceOrder, m.order)}
	b.Run("order", func(b *testing.B) {
		for b.Loop() {
			if _, err := Examine(m.order, list, by); err != nil {
				b.Fatal(err)
			}
		}
	})
	o, err := Parse(m.order)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("share of 400", func(b *testing.B) {
		for b.Loop() {
			if _, err := o.Share("default", 0, m.lines["default"][0]); err != nil {
				b.Fatal(err)
			}
		}
	})
	h := hostNamed("fw1")
	b.Run("record", func(b *testing.B) {
		for b.Loop() {
			if _, err := RecordOf(h); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkNew(b *testing.B) {
	hosts := make([]fleet.Host, 100_000)
	for i := range hosts {
		hosts[i] = hostNamed(fmt.Sprint("fw", i))
	}
	var known Records
	for name, recordOf := range map[string]RecordFunc{
		"the first of an inventory": RecordOf, "a later one": known.Of("v1"),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _, err := New(Order{NotBefore: noon, NotAfter: noon.Add(time.Hour), Spec: []byte("{}")}, hosts, recordOf)
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
