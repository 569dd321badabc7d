package dnstest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"muster/testkit/porttest"
)

// Zone is the signed zone of a lab, Parent the zone above it.
const (
	Zone   = "kid.lab"
	Parent = "lab"
)

// Lab is a signed zone as the world sees it.
type Lab struct {
	Primary   *Server // signs Zone and rolls its keys
	Secondary *Server // transfers it
	Parent    *Server // BIND: carries the DS of Zone
	Resolver  *Server // BIND: validates what all of them say, from the parent's key down

	t    testing.TB
	told map[string]bool // tags of the keys whose DS the primary was told of

	// dsTTL is that of the DS, in seconds. BIND's policy knows it. Knot's does not, and
	// forgets the old key at once: there it is long enough to show.
	dsTTL int
}

// Options says what is unusual of a lab.
type Options struct {
	Keys string // BIND: lines of the policy's keys; empty: a KSK and a ZSK
	CSK  bool   // Knot: one key for both

	// Apart gives each server port 53 of an address of its own, as in the world: the
	// primary 127.0.0.1, the secondary 127.0.0.2, the parent 127.0.0.3, the resolver
	// 127.0.0.4. The loopback interface must have them.
	Apart bool
}

// place says where the nth server belongs.
func (o Options) place(n int) place {
	if o.Apart {
		return place{fmt.Sprint("127.0.0.", n), 53}
	}
	return place{address: "127.0.0.1"}
}

// The servers of a lab by number, as place has it.
const (
	primary = iota + 1
	secondary
	parent
	resolver
)

// The timings of both kinds of server, in seconds. Signatures last long enough
// that a busy machine renews them in time, and BIND wants them renewed no earlier
// than after a tenth of that.
const (
	bindPolicy = `dnssec-policy fast {
	keys { %s };
	dnskey-ttl 1; max-zone-ttl 1; zone-propagation-delay 2; publish-safety 1; retire-safety 1;
	parent-ds-ttl 1; parent-propagation-delay 1; purge-keys 0;
	signatures-validity 30; signatures-validity-dnskey 30; signatures-refresh 26; signatures-jitter 0;
};
`
	bindKeys = "ksk lifetime unlimited algorithm 13; zsk lifetime unlimited algorithm 13;"

	knotPolicy = `acl:
- id: all
  address: 127.0.0.0/8
  action: [transfer, notify]
remote:
- id: other
  address: %s
submission:
- id: people
  timeout: 0
policy:
- id: fast
  algorithm: ecdsap256sha256
  single-type-signing: %t
  dnskey-ttl: 1
  zone-max-ttl: 1
  propagation-delay: 2
  rrsig-lifetime: 1h
  rrsig-refresh: 10m
  rrsig-pre-refresh: 1
  ksk-submission: people
template:
- id: default
  journal-content: all
`
	kidFile = `$TTL 1
@ SOA ns.kid.lab. who.kid.lab. 1 1 1 3600 1
@ NS ns.kid.lab.
@ NS ns2.kid.lab.
ns A %s
ns2 A %s
www A 192.0.2.1
`
	parentFile = `$TTL 1
@ SOA ns.lab. who.lab. 1 3600 3600 86400 1
@ NS ns.lab.
ns A %s
kid NS ns.kid.lab.
kid NS ns2.kid.lab.
ns.kid A %s
ns2.kid A %s
`
)

func (o Options) kidFile() string {
	return fmt.Sprintf(kidFile, o.place(primary).address, o.place(secondary).address)
}

func (o Options) parentFile() string {
	return fmt.Sprintf(parentFile, o.place(parent).address, o.place(primary).address,
		o.place(secondary).address)
}

func knotAt(address string, port int) string { return fmt.Sprint(address, "@", port) }

// StartBIND makes a lab whose Zone is signed by named, with the policy fast.
func StartBIND(t testing.TB, o Options) *Lab {
	t.Helper()
	if o.Keys == "" {
		o.Keys = bindKeys
	}
	later := o.place(secondary)
	if later.port == 0 {
		later.port = porttest.On(t, "127.0.0.1")
	}
	l := &Lab{t: t, told: map[string]bool{}, dsTTL: 1}
	l.Primary = startBIND(t, o.place(primary), "\tnotify explicit; recursion no; dnssec-validation no;\n",
		fmt.Sprintf(bindPolicy, o.Keys)+fmt.Sprintf("zone %q { type primary; file \"kid.db\"; "+
			"dnssec-policy fast; inline-signing yes; also-notify { %s port %d; }; };\n", Zone, later.address, later.port),
		map[string]string{"kid.db": o.kidFile()})
	l.Secondary = startBIND(t, later, "\tnotify no; recursion no; dnssec-validation no;\n",
		fmt.Sprintf("zone %q { type secondary; file \"kid.db\"; masterfile-format text; "+
			"primaries { %s port %d; }; };\n", Zone, l.Primary.Address, l.Primary.Port), nil)
	l.around(o)
	return l
}

// StartKnot makes a lab whose Zone is signed by knotd, with the policy fast.
func StartKnot(t testing.TB, o Options) *Lab {
	t.Helper()
	later := o.place(secondary)
	if later.port == 0 {
		later.port = porttest.On(t, "127.0.0.1")
	}
	l := &Lab{t: t, told: map[string]bool{}, dsTTL: 15}
	l.Primary = startKnot(t, o.place(primary), fmt.Sprintf(knotPolicy, knotAt(later.address, later.port), o.CSK)+`zone:
- domain: `+Zone+`
  file: kid.db
  dnssec-signing: on
  dnssec-policy: fast
  zonefile-sync: -1
  zonefile-load: difference-no-serial
  acl: all
  notify: other
`, map[string]string{"kid.db": o.kidFile()})
	l.Secondary = startKnot(t, later, fmt.Sprintf(knotPolicy, knotAt(l.Primary.Address, l.Primary.Port), o.CSK)+`zone:
- domain: `+Zone+`
  master: other
  acl: all
`, nil)
	l.around(o)
	return l
}

// around starts the parent and the resolver, publishes the DS and waits until the
// zone is secure for everybody, the primary's own bookkeeping included.
func (l *Lab) around(o Options) {
	l.t.Helper()
	l.Parent = startBIND(l.t, o.place(parent), "\tnotify no; recursion no; dnssec-validation no;\n",
		fmt.Sprintf("zone %q { type primary; file \"lab.db\"; dnssec-policy default; allow-update { 127.0.0.0/8; }; };\n",
			Parent), map[string]string{"lab.db": o.parentFile()})
	anchor := l.signed(l.Parent, Parent)
	zone, ds, _ := strings.Cut(anchor[0], " IN DS ")
	parts := strings.Fields(ds)
	l.Resolver = startBIND(l.t, o.place(resolver), "\trecursion yes; dnssec-validation yes; max-ncache-ttl 1; "+
		"qname-minimization off; servfail-ttl 0;\n", fmt.Sprintf(`
trust-anchors { %s static-ds %s %s %s %q; };
zone %q { type forward; forward only; forwarders { %s port %d; }; };
zone %q { type forward; forward only; forwarders { %s port %d; %s port %d; }; };
`, zone, parts[0], parts[1], parts[2], strings.Join(parts[3:], ""),
		Parent, l.Parent.Address, l.Parent.Port, Zone, l.Primary.Address, l.Primary.Port,
		l.Secondary.Address, l.Secondary.Port), nil)

	l.Delegate(l.signed(l.Primary, Zone)...)
	until(l.t, "the secondary has the zone", func() error {
		if out, err := l.Secondary.Ask(Zone, "DNSKEY"); err != nil || out == "" {
			return fmt.Errorf("no keys there: %w", err)
		}
		return nil
	})
	until(l.t, "the primary knows of the DS", l.settle)
	until(l.t, "the zone is secure", func() error {
		if v := Look(l.Resolver, "www."+Zone); v != Secure {
			return fmt.Errorf("it is %s", v)
		}
		return nil
	})
}

// signed waits until a server signs a zone and gives the DS of its keys.
func (l *Lab) signed(s *Server, zone string) (ds []string) {
	l.t.Helper()
	until(l.t, "the zone is signed", func() (err error) {
		ds, err = l.dsOf(s, zone)
		return err
	})
	return ds
}

// dsOf gives the DS of the keys which a zone has and which a DS is for.
func (l *Lab) dsOf(s *Server, zone string) ([]string, error) {
	keys, err := s.Ask(zone, "DNSKEY")
	if err != nil {
		return nil, err
	}
	file := folder(l.t) + "/keys"
	write(l.t, file, keys)
	out, err := run(program(l.t, "dnssec-dsfromkey"), "-f", file, zone)
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSpace(out), "\n"), nil
}

// DS gives the DS records of all keys of Zone that a DS is for, as a parent's
// zone file has them.
func (l *Lab) DS() []string {
	l.t.Helper()
	return l.signed(l.Primary, Zone)
}

// Delegate gives the parent these DS records of Zone instead of all that it has.
func (l *Lab) Delegate(ds ...string) {
	l.t.Helper()
	lines := []string{fmt.Sprint("server ", l.Parent.Address, " ", l.Parent.Port), "zone " + Parent,
		"update delete " + Zone + " DS"}
	for _, one := range ds {
		lines = append(lines, "update add "+strings.Replace(one, " IN DS ", fmt.Sprint(" ", l.dsTTL, " IN DS "), 1))
	}
	file := folder(l.t) + "/update"
	write(l.t, file, strings.Join(append(lines, "send"), "\n")+"\n")
	// Over TCP with a minute: named writes its journal to the disk before it answers, which
	// took longer than the three seconds of UDP when the disk was busy.
	if _, err := run(l.Parent.tools["nsupdate"], "-v", "-t", "60", file); err != nil {
		l.t.Fatal(err)
	}
}

// settle tells the primary that its DS is at the parent, and holds when it has
// taken note of that.
func (l *Lab) settle() error {
	keys, err := l.Primary.Keys(Zone)
	if err != nil {
		return err
	}
	if l.Primary.knot {
		if regexp.MustCompile(`(?m) [KC]SK .* active=`).MatchString(keys) {
			return nil
		}
		_, err := l.Primary.Tell("zone-ksk-submitted", Zone)
		return fmt.Errorf("not yet: %s %w", keys, err)
	}
	for _, tag := range regexp.MustCompile(`key: (\d+) \(.*\), [KC]SK`).FindAllStringSubmatch(keys, -1) {
		if l.told[tag[1]] {
			continue // saying it again would start the time of the DS anew
		}
		if _, err := l.Primary.Tell("dnssec", "-checkds", "-key", tag[1], "published", Zone); err != nil {
			return err
		}
		l.told[tag[1]] = true
	}
	if strings.Contains(keys, "rumoured") || strings.Contains(keys, ":          hidden") {
		return fmt.Errorf("not yet: %s", keys)
	}
	return nil
}
