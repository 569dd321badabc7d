package fleet_test

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/fleet"
)

// large returns the YAML of n hosts with every field, as pairs of two customers.
func large(n int) []byte {
	var b bytes.Buffer
	b.WriteString("defaults: {user: root, key: /etc/muster/id_ed25519}\nhosts:\n")
	for i := range n {
		fmt.Fprintf(&b, `
  - name: fw%05d
    address: 127.%d.%d.%d
    port: 2222
    customer: %s
    zone: default
    group: pair-%d
    labels: {role: fw, model: x%d, rack: r%d}
    host_key: "%s"
`, i, 77+i/62_500, i/250%250, 1+i%250, []string{"acme", "globex"}[i/2%2], i/2, 100*(i%7), i%311, keyA)
	}
	return b.Bytes()
}

func BenchmarkParse20000(b *testing.B) {
	data := large(20_000)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := fleet.Parse(fleet.Source{Name: "fleet.yaml", Data: data}); err != nil {
			b.Fatal(err)
		}
	}
}

// Each of these must take less than 50 ms for 20,000 hosts. The last ones are the most
// expensive selectors that are allowed, and those that end in an error.
func BenchmarkSelect20000(b *testing.B) { benchmarkSelect(b, 20_000) }

func BenchmarkSelect100000(b *testing.B) { benchmarkSelect(b, 100_000) }

func benchmarkSelect(b *testing.B, hosts int) {
	inv, err := fleet.Parse(fleet.Source{Name: "fleet.yaml", Data: large(hosts)})
	if err != nil {
		b.Fatal(err)
	}
	last := fmt.Sprintf("%05d", hosts-1)
	several := strings.Repeat("(fw00001,fw00002),", 48) + "fw00003"
	for _, bm := range []struct{ name, selector string }{
		{"all", "all"},
		{"range", "fw[00000-" + fmt.Sprintf("%05d", min(hosts, 99_999)-1) + "]"},
		{"range less range", "fw[00000-19999]!fw[10000-19999]"},
		{"either range", "fw[00000-19999]^fw[10000-19999]"},
		{"glob", "fw*7"},
		{"label", "customer=acme,role in (fw,vpn),!drained"},
		{"both", "fw[00001-15000]&{customer=acme,!drained}"},
		{"every name", strings.Join(names(inv.Hosts()[:min(hosts, 99_000)]), ",")},
		{"without each name", "all!" + strings.Join(names(inv.Hosts()[:10_000]), "!")},
		{"50 globs", strings.Repeat("*0*1*2*3*,", 49) + "*9"},
		{"50 label terms", strings.Repeat("!a,", 49) + "role=fw"},
		{"1,000 values", "rack in (" + numbered(1000) + ",r1,r2,r3)"},
		{"numbers", "rack>1,model<2,group>3"},
		{"48 parentheses", several},
		{"24 intersections", strings.Repeat("all&", 24) + "all"},
		{"missing names", "fw[1-99999]"},
		{"no such host", "fw0000x"},
		{"no such customer", "acmee,globx,pair-1x,x10o,fu"},
		{"no such value", "rack=r999,customer=acmee"},
		{"no such host behind the last", "fw" + last + "0"},
	} {
		b.Run(bm.name, func(b *testing.B) {
			for b.Loop() {
				sel, err := fleet.ParseSelector(bm.selector)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = inv.Select(sel)
			}
		})
	}
	// The first selector of a new inventory also builds the index.
	b.Run("index", func(b *testing.B) {
		sel, err := fleet.ParseSelector("role=fw")
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := inv.WithLabels(nil).Select(sel); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkFold20000(b *testing.B) {
	var regular, irregular []string
	for i := range 20_000 {
		regular = append(regular, fmt.Sprintf("fw%05d.example.com", i))
		irregular = append(irregular, fmt.Sprintf("h%x-%x.%x.net", i*7919, i*31, i*977))
	}
	b.Run("regular", func(b *testing.B) {
		for b.Loop() {
			fleet.Fold(regular)
		}
	})
	b.Run("irregular", func(b *testing.B) {
		for b.Loop() {
			fleet.Fold(irregular)
		}
	})
}

func BenchmarkVersion20000(b *testing.B) {
	inv, err := fleet.Parse(fleet.Source{Name: "fleet.yaml", Data: large(20_000)})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		inv.Version()
	}
}

// cpu returns the CPU time of the process, which on a busy machine is more reliable
// than the elapsed time. Load is everything that a server does when a file changes,
// except its calls to Redis.
func BenchmarkLoad20000(b *testing.B) {
	data := large(20_000)
	begun := cpuTime(b)
	for b.Loop() {
		inv, err := fleet.Parse(fleet.Source{Name: "fleet.yaml", Data: data})
		if err != nil {
			b.Fatal(err)
		}
		inv.Version()
		fleet.Diff(inv, inv)
	}
	b.ReportMetric((cpuTime(b)-begun).Seconds()*1000/float64(b.N), "cpu-ms/op")
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
