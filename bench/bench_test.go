package main

import (
	"bufio"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestRowsAreJudgedByWhatIsPrinted(t *testing.T) {
	t.Parallel()
	peer := newRow("peer", "jobs/s", []float64{1000})
	for _, c := range []struct {
		name string
		row  row
		want string
	}{
		{"the median counts", newRow("", "", []float64{9, 1, 2}).atMost(2), met},
		{"of an even number, too", newRow("", "", []float64{1, 4, 2, 9}).atMost(2.99), missed},
		{"1.004 is printed as 1.00", newRow("", "", []float64{1.004}).atMost(1), met},
		{"1.006 is printed as 1.01", newRow("", "", []float64{1.006}).atMost(1), missed},
		{"ratio", newRow("", "", []float64{1500}).to("peer", peer).ratioAtLeast(1.5), met},
		{"ratio, not quite", newRow("", "", []float64{1490}).to("peer", peer).ratioAtLeast(1.5), missed},
	} {
		if c.row.Result != c.want {
			t.Errorf("%s: %+v is %q, want %q", c.name, c.row, c.row.Result, c.want)
		}
	}
}

func TestNumbersAreShort(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{0: "0", 0.348: "0.35", 1.5: "1.50", 4: "4", 12.34: "12.3",
		123.4: "123", 1234.5: "1,235", 1234567: "1,234,567", -1234: "-1,234"} {
		if got := number(x); got != want {
			t.Errorf("number(%v) = %q, want %q", x, got, want)
		}
	}
}

func TestMonitorTellsClientsFromScripts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200)
	text := strings.Join([]string{
		`+1.000001 [0 127.0.0.1:4001] "evalsha" "a [1 lua] b" "` + long + `"`,
		`+1.000002 [0 lua] "TIME"`,
		`+1.000003 [1 127.0.0.1:4002] "ping"`,
		`+1.000004 [0 unix:/run/redis.sock] "set" "k" "v"`,
		`+1.000005 [2 127.0.0.1:4003] "echo" "over"`,
		`+1.000006 [0 127.0.0.1:4001] "ping"`}, "\r\n") + "\r\n"
	m := &monitor{last: "over", calls: map[string]int{}}
	// A buffer smaller than the first line: its rest is no line of its own.
	if err := m.count(bufio.NewReaderSize(strings.NewReader(text), 100)); err != nil {
		t.Fatal(err)
	}
	if m.calls["0"] != 2 || m.calls["1"] != 1 || len(m.calls) != 2 {
		t.Errorf("counted %v, want 2 in database 0 and 1 in database 1", m.calls)
	}
	m.last = "never"
	if err := m.count(bufio.NewReader(strings.NewReader("-ERR no\r\n"))); err == nil {
		t.Error("a line of another form was taken")
	}
}

func TestFlagsAreCheckedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := parse([]string{"-rounds", "0", "-o", "xml", "-only", "drain,nonsense", "-idle", "1ms"})
	for _, want := range []string{"-rounds 0", "-o xml", "-only nonsense", "-idle 1ms"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
	if _, err := parse(nil); err != nil {
		t.Errorf("without flags: %v", err)
	}
}

func TestTheTableHasThreeForms(t *testing.T) {
	t.Parallel()
	peer := newRow("asynq", "jobs/s", []float64{1000, 1100, 1200})
	var all table
	all.add(section{name: "drain", about: "no-op jobs"}, []row{
		newRow("muster", "jobs/s", []float64{900}).to("asynq", peer).ratioAtLeast(1.5), peer})
	for form, want := range map[string]string{
		"table":    "0 targets met, 1 missed (drain: muster).",
		"markdown": "| muster | 900 jobs/s |  | 0.82 × asynq | ≥ 1.50 × asynq | **missed** |",
		"json":     `"ratio": 0.81`,
	} {
		var b strings.Builder
		if err := printers[form](&b, all); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s lacks %q:\n%s", form, want, b.String())
		}
		if form == "json" && !json.Valid([]byte(b.String())) {
			t.Errorf("no JSON:\n%s", b.String())
		}
	}
}

func TestMaxMinFairness(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		demands []int
		n       int
		want    []float64
	}{
		{[]int{10, 3, 1}, 9, []float64{5, 3, 1}},
		{[]int{10, 10, 10}, 9, []float64{3, 3, 3}},
		{[]int{2, 1}, 9, []float64{2, 1}},
	} {
		if got := maxMin(c.demands, c.n); !slices.Equal(got, c.want) {
			t.Errorf("%d to %v: %v, want %v", c.n, c.demands, got, c.want)
		}
	}
}
