package fold_test

import (
	"fmt"
	"strings"
	"testing"

	"muster/api"
	"muster/jobs"
	"muster/server/fold"
)

// folded folds jobs with their outputs as a summary does.
func folded(t testing.TB, list []jobs.JobInfo, output func(jobs.ID) []byte) []api.Alike {
	t.Helper()
	f := fold.New(4 << 10)
	for _, j := range list {
		f.Add(j, output(j.ID), "")
	}
	got, err := f.Groups(fold.GroupsMax, func(missing []jobs.ID) (map[jobs.ID][]byte, error) {
		again := map[jobs.ID][]byte{}
		for _, id := range missing {
			again[id] = output(id)
		}
		return again, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestSummaryOfManyDifferentOutputsIsCut(t *testing.T) {
	t.Parallel()
	var list []jobs.JobInfo
	for i := range 500 {
		j := jobs.JobInfo{Host: fmt.Sprintf("h%03d", i), State: jobs.Ended, Outcome: jobs.Succeeded}
		if i%100 == 99 {
			j.Outcome = jobs.Failed
		}
		if i >= 490 {
			j.Outcome, j.Error = jobs.Skipped, "all the same"
		}
		j.ID = jobs.NewID("0123456789", j.Host)
		list = append(list, j)
	}
	got := folded(t, list, func(id jobs.ID) []byte {
		if id.Host() >= "h490" {
			return nil
		}
		return []byte(id.Host())
	})
	if len(got) != 101 {
		t.Fatalf("%d groups, want 100 and one for the rest", len(got))
	}
	if got[0].Count != 10 || got[0].Error != "all the same" {
		t.Errorf("the biggest is not first: %+v", got[0])
	}
	for i := 1; i <= 4; i++ {
		if got[i].Outcome != jobs.Failed {
			t.Errorf("group %d is %s: failures come first among equals", i, got[i].Outcome)
		}
	}
	rest := got[100]
	if rest.Outcome != "other" || rest.Count != 391 ||
		rest.Error != "391 more groups, none bigger than those shown: 391 succeeded" {
		t.Errorf("the rest: %+v", rest)
	}
	sum := 0
	for _, g := range got {
		sum += g.Count
	}
	if sum != 500 {
		t.Errorf("the groups have %d hosts, want 500", sum)
	}
}

func TestSilentHostsAreToldApartByTheirError(t *testing.T) {
	t.Parallel()
	var list []jobs.JobInfo
	for i, text := range []string{"refused", "no route", "refused"} {
		host := fmt.Sprintf("h%d", i)
		list = append(list, jobs.JobInfo{ID: jobs.NewID("0123456789", host), Host: host, State: jobs.Ended,
			Outcome: jobs.Unreachable, Error: text})
	}
	got := folded(t, list, func(jobs.ID) []byte { return nil })
	if len(got) != 2 || got[0].Hosts != "h[0,2]" || got[1].Error != "no route" {
		t.Errorf("got %+v", got)
	}
}

func TestErrorsAreComparedWithoutTheirHost(t *testing.T) {
	t.Parallel()
	print := "SHA256:" + strings.Repeat("a", 43)
	for _, c := range []struct{ text, host, address, want string }{
		{"", "fw1", "10.0.0.1:22", ""},
		{"connect 10.0.0.1:22: refused", "fw1", "10.0.0.1:22", "connect ADDRESS: refused"},
		{"connect 10.0.0.1:22: refused", "fw1", "", "connect 10.0.0.1:22: refused"},
		{"no such name: fw1.example", "fw1", "fw1.example:22", "no such name: HOST.example"},
		{"a cat", "a", "", "a cat"},
		{"its host key is ssh-rsa " + print + ", the inventory has ssh-rsa " + print, "fw1", "",
			"its host key is ssh-rsa SHA256:…, the inventory has ssh-rsa SHA256:…"},
	} {
		if got := fold.Impersonal(c.text, c.host, c.address); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

// 20,000 hosts must fold in a second.
func BenchmarkFold20000(b *testing.B) {
	list := make([]jobs.JobInfo, 20_000)
	outputs := make([][]byte, 16)
	for i := range outputs {
		outputs[i] = []byte(strings.Repeat(fmt.Sprintf("line of version %d\n", i), 20))
	}
	for _, c := range []struct {
		name string
		host func(i int) string
		text func(i int) []byte
	}{
		{"16 outputs", func(i int) string { return fmt.Sprintf("fw%05d", i) },
			func(i int) []byte { return outputs[i%16] }},
		{"all different, odd names", func(i int) string { return fmt.Sprintf("h%x-%x.%x.net", i*7919, i*31, i*977) },
			func(i int) []byte { return fmt.Appendf(nil, "%s%d", outputs[0], i) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			place := map[jobs.ID]int{}
			for i := range list {
				h := c.host(i)
				list[i] = jobs.JobInfo{ID: jobs.NewID("0123456789", h), Host: h, Outcome: jobs.Succeeded}
				place[list[i].ID] = i
			}
			for b.Loop() {
				folded(b, list, func(id jobs.ID) []byte { return c.text(place[id]) })
			}
		})
	}
}
