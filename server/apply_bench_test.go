package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"muster/api"
	"muster/testkit/redistest"
	"muster/windows"
)

// The size of the house for BenchmarkApply.
const (
	benchCustomers = 500
	benchHosts     = 40 // of each customer
)

// benchFiles are a file of each customer, with a schedule, a window, a freeze and a trigger; n is a
// number that all of them say.
func benchFiles(t testing.TB, n int) []windows.File {
	t.Helper()
	files := make([]windows.File, benchCustomers)
	for i := range files {
		files[i] = benchFile(i, n)
	}
	return files
}

func benchFile(i, n int) windows.File {
	name := fmt.Sprintf("c%03d", i)
	text := strings.NewReplacer("length: 2h", fmt.Sprintf("length: %dm", 60+n), "reason: peak",
		fmt.Sprintf("reason: peak %d", n), "cmd: uptime", fmt.Sprintf("cmd: uptime %d", n), "on: all",
		"on: customer="+name).Replace(entriesOf(name))
	text += "---\n" + strings.NewReplacer("acme", name, "at_most: 2", fmt.Sprintf("at_most: %d", 1+n)).Replace(
		triggerNamed(name+"-disk"))
	return windows.File{Name: "conf/" + name + ".yaml", Content: text}
}

// BenchmarkApply measures an apply of 500 files on 20,000 hosts from the request to its answer, on a
// real Redis: all entries change, all stay, one customer changes in the 500 files, or in a file of its
// own, and each schedule is for all hosts. docs/APPLY.md has its command and figures.
func BenchmarkApply(b *testing.B) {
	hosts := many(benchCustomers * benchHosts)
	for i := range hosts {
		hosts[i].Customer = fmt.Sprintf("c%03d", i/benchHosts)
		hosts[i].Labels = map[string]string{"site": "x"}
	}
	cfg := redistest.StartServer(b).Config()
	w := start(b, setup{redis: &cfg, inventory: fixed(hosts)})
	number := 0
	apply := func(b *testing.B, files []windows.File, changed int) {
		b.Helper()
		did, status, words := w.applyTo(api.ApplyRequest{Files: files}, nil)
		if status != http.StatusOK || did.Counts["changed"]+did.Counts["added"] != changed {
			b.Fatalf("%d %v, want %d changes: %.2000s", status, did.Counts, changed, words)
		}
	}
	const each = 4 // entries of a customer
	apply(b, benchFiles(b, 0), each*benchCustomers)
	b.Run("all of 500 files", func(b *testing.B) {
		for b.Loop() {
			number++
			apply(b, benchFiles(b, number%50), each*benchCustomers)
		}
	})
	apply(b, benchFiles(b, 0), each*benchCustomers*min(1, number%50))
	b.Run("none of 500 files", func(b *testing.B) {
		files := benchFiles(b, 0)
		for b.Loop() {
			apply(b, files, 0)
		}
	})
	b.Run("one customer of 500 files", func(b *testing.B) {
		files := benchFiles(b, 0)
		for b.Loop() {
			number++
			files[7] = benchFile(7, 1+number%2)
			apply(b, files, each)
		}
	})
	b.Run("one customer alone", func(b *testing.B) {
		for b.Loop() {
			number++
			apply(b, []windows.File{benchFile(7, 3+number%2)}, each)
		}
	})
	// Each schedule is for all 20,000 hosts, then in windows that nobody has approved, too.
	for name, more := range map[string]string{"on all in 500 files": "",
		"on all in windows": "\nwindow: required\nexpect: 5m"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				number++
				files := benchFiles(b, number%50)
				for i, f := range files {
					files[i].Content = strings.Replace(f.Content, fmt.Sprintf("on: customer=c%03d", i), "on: all"+more, 1)
				}
				apply(b, files, each*benchCustomers)
			}
		})
	}
}
