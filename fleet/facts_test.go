package fleet_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
)

var factTime = time.Unix(1_800_000_000, 0)

const someFacts = `Welcome to fw001!
fact ID=debian
fact VERSION_ID="12"
fact PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
fact system=Linux
fact kernel=6.1.0-25-amd64
fact arch=x86_64
fact vendor=Dell Inc.
fact model=PowerEdge R640
fact firmware=2.21.2
fact boot_id=0b7f4b9e-1f4e-4c53-9a1e-2f1f5a5d7c11
fact uptime=1234567.89 2345678.90
fact df=/dev/mapper/a b 20511312 10240000 9206000 53% /
fact clock=1799999997
fact lacks= flock setsid
fact end
Bye.
`

func TestParseFacts(t *testing.T) {
	t.Parallel()
	got, err := fleet.ParseFacts([]byte(someFacts), factTime, factTime)
	want := fleet.Facts{"os": "debian", "os_version": "12", "os_name": "Debian GNU/Linux 12 (bookworm)",
		"kernel": "6.1.0-25-amd64", "arch": "x86_64", "vendor": "Dell Inc.", "model": "PowerEdge R640",
		"firmware": "2.21.2", "boot_id": "0b7f4b9e-1f4e-4c53-9a1e-2f1f5a5d7c11", "uptime": "1234567",
		"disk": "20030", "disk_free": "8990", "clock_offset": "-3", "record": "flock, setsid"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	for name := range want {
		if !slices.Contains(fleet.FactNames(), name) {
			t.Errorf("%s is not among the names", name)
		}
	}
	if len(want) != len(fleet.FactNames()) {
		t.Errorf("%d names, %d facts", len(fleet.FactNames()), len(want))
	}
}

func TestParseFactsOfSmallSystems(t *testing.T) {
	t.Parallel()
	got, err := fleet.ParseFacts([]byte("fact system=OpenBSD\r\nfact tree=Board 3\nfact ID=\nfact end\n"),
		time.Time{}, time.Time{})
	if diff := cmp.Diff(fleet.Facts{"os": "openbsd", "model": "Board 3"}, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

// If an attempt took over the result of an earlier one, the job may end long after its host
// reported its clock. That does not make the clock wrong.
func TestAClockOffsetIsReportedOnlyIfItIsCertain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		from, to int64 // start and end of the job, in seconds around the true time
		off      int64 // of the host's clock
		want     string
	}{
		{"right", 0, 1, 0, "0"},
		{"an hour ahead", 0, 1, 3600, "3599"},
		{"an hour behind", 0, 1, -3600, "-3600"},
		{"right, said by an attempt before", -40, 20, 0, "0"},
		{"right, said by an attempt long before", -2, 3600, 0, ""},
		{"wrong by less than that took", -2, 3600, 1200, ""},
		{"wrong by more than that took", -2, 3600, 7200, "3600"},
		{"right, begun long before it was said", -7200, 1, 0, ""},
		{"behind, begun long before it was said", -7200, 1, -7260, "-60"},
	} {
		said := fmt.Sprintf("fact clock=%d\nfact end\n", factTime.Unix()+tt.off)
		at := func(s int64) time.Time { return factTime.Add(time.Duration(s) * time.Second) }
		facts, err := fleet.ParseFacts([]byte(said), at(tt.from), at(tt.to))
		if err != nil || facts["clock_offset"] != tt.want {
			t.Errorf("%s: off by %q, %v, want %q", tt.name, facts["clock_offset"], err, tt.want)
		}
	}
}

func TestParseFactsRejectsMalformedReports(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                                        "the end is missing",
		"fact os=debian\n":                                        `"os=debian": no such fact`,
		"fact ID=a\n":                                             "the end is missing",
		"fact ID=a\nfact ID=b\nfact end\n":                        "ID is there twice",
		"fact end\nfact ID=a\n":                                   "more facts follow",
		"fact end\nfact end\n":                                    "more facts follow",
		"fact nonsense\nfact end\n":                               "no such fact",
		"fact fact.role=fw\nfact end\n":                           "no such fact",
		"fact ID=a\x1b[31m\nfact end\n":                           "not printable",
		"fact ID=a\xff\nfact end\n":                               "not printable",
		"fact ID=a\u202eb\nfact end\n":                            "not printable",
		"fact boot_id=1\nfact end\n":                              "want a UUID",
		"fact uptime=-1\nfact end\n":                              "want seconds",
		"fact df=1 2 3\nfact end\n":                               "want a line of df",
		"fact df=a b c d e f\nfact end\n":                         "want a line of df",
		"fact clock=now\nfact end\n":                              "want seconds since 1970",
		"fact clock=99999999999999\nfact end\n":                   "want seconds since 1970",
		"fact model=" + strings.Repeat("x", 257) + "\nfact end\n": "has 257 bytes",
		strings.Repeat("x", 70_000):                               "70000 bytes, at most",
	} {
		got, err := fleet.ParseFacts([]byte(text), factTime, factTime)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, %v, want %q", text, got, err, want)
		}
	}
}

func TestFactsAreLabels(t *testing.T) {
	t.Parallel()
	got := fleet.Facts{"os": "debian", "model": "PowerEdge R640 (x)", "clock_offset": "-3", "vendor": "ü",
		"os_name": strings.Repeat("ab ", 40)}.Labels()
	want := map[string]string{"fact.os": "debian", "fact.model": "PowerEdge_R640__x",
		"fact.clock_offset": "3", "fact.os_name": strings.Repeat("ab_", 20) + "ab"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Whatever a host reports, facts are few, short and printable, and fit into a selector.
func FuzzFacts(f *testing.F) {
	f.Add([]byte(someFacts))
	f.Fuzz(func(t *testing.T, said []byte) {
		facts, err := fleet.ParseFacts(said, factTime, factTime)
		if err != nil {
			return
		}
		for name, value := range facts {
			if !slices.Contains(fleet.FactNames(), name) || len(value) > 256 || value == "" {
				t.Errorf("%s = %q", name, value)
			}
		}
		for key, value := range facts.Labels() {
			if _, err := fleet.ParseSelector(key + "=" + value); err != nil {
				t.Errorf("%s=%s: %v", key, value, err)
			}
		}
	})
}

// Labels from facts and other additional labels exist side by side.
func TestAdditionalLabelsAreMerged(t *testing.T) {
	t.Parallel()
	inv, err := fleet.New([]fleet.Host{{Name: "a", Address: "10.0.0.1", Port: 22, User: "x", Zone: "z",
		Fence: fleet.FenceAuto, Labels: map[string]string{"role": "fw"}}, {Name: "b", Address: "10.0.0.2",
		Port: 22, User: "x", Zone: "z", Fence: fleet.FenceAuto}})
	if err != nil {
		t.Fatal(err)
	}
	with := inv.WithLabels(map[string]map[string]string{"a": fleet.Facts{"os": "debian", "arch": "x"}.Labels(),
		"b": {"fact.os": "debian"}}).WithLabels(map[string]map[string]string{"a": {"seen": "true", "fact.arch": "y"}})
	for on, want := range map[string]int{"fact.os=debian": 2, "fact.os=debian,seen,role=fw": 1,
		"fact.arch=y": 1, "fact.arch=x": 0} {
		sel, err := fleet.ParseSelector(on)
		if err != nil {
			t.Fatal(err)
		}
		hosts, err := with.Select(sel)
		if len(hosts) != want || (err == nil) != (want > 0) {
			t.Errorf("%s picks %d, %v, want %d", on, len(hosts), err, want)
		}
	}
}

// The message for a fact that was never gathered does not call it a misspelt label.
func TestAFactThatNoHostReportedHasItsOwnHint(t *testing.T) {
	t.Parallel()
	none := small(t)
	some := none.WithLabels(map[string]map[string]string{"fw001": {"fact.os": "debian"}})
	for _, tt := range []struct {
		in       *fleet.Inventory
		on, want string
	}{
		{none, "fact.os=debian", "no host has reported fact.os yet: `muster facts gather SELECTOR` asks hosts"},
		{none, "fact.disk_free<500", "no host has reported fact.disk_free yet: `muster facts gather SELECTOR` asks hosts"},
		{none, "all&{fact.os}", "no host has reported fact.os yet"},
		{some, "fact.model=x200", "no host has reported fact.model yet"},
		{some, "fact.os=debain", "no host has fact.os=debain, nearest: fact.os=debian"},
		{some, "fact.kernle=6", "there is no fact kernle, nearest: kernel"},
		{none, "fact.zzzzzzz=1", "there is no fact zzzzzzz, there are: os, os_version, "},
	} {
		sel, err := fleet.ParseSelector(tt.on)
		if err != nil {
			t.Errorf("%s: %v", tt.on, err)
			continue
		}
		if _, err := tt.in.Select(sel); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.on, err, tt.want)
		}
	}
	sel, err := fleet.ParseSelector("!fact.os,role=vpn")
	if hosts, bad := none.Select(sel); err != nil || bad != nil || len(hosts) != 1 {
		t.Errorf("without a fact: %v, %v, %v", hosts, err, bad)
	}
}

func TestUnfenced(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		fence fleet.Fence
		said  string
		want  string
	}{
		{"not asked yet", fleet.FenceAuto, "", ""},
		{"keeps a record", fleet.FenceAuto, "fact lacks=\n", ""},
		{"lacks a program", fleet.FenceAuto, "fact lacks= flock\n", "it lacks flock"},
		{"must and cannot", fleet.FenceRequired, "fact lacks= flock setsid\n", "it lacks flock, setsid"},
		{"is not to be asked", fleet.FenceNone, "fact lacks=\n", "fence: none"},
	} {
		facts, err := fleet.ParseFacts([]byte(tt.said+"fact end\n"), factTime, factTime)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := fleet.Unfenced(fleet.Host{Fence: tt.fence}, facts); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
