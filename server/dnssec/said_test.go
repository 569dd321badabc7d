package dnssec

import (
	"slices"
	"strings"
	"testing"

	"muster/api"
	"muster/jobs"
)

const saidByStatus = `== step 1 of 1: status ==
key       1 ZSK OLD active
== step 1 of 1: status ==
zone      example.com on bind
key       4711  KSK ECDSAP256SHA256 active
key       12345 ZSK ECDSAP256SHA256 old
key       999999 ZSK X active
key       12 ZSK <script> active
DS        4711 13 2 AB
zsk       policy default: Ipub 7500 s = Dprp 300; Iret 867900 s = Dsgn 1
server    127.0.0.1: serial 3, keys 4711 12345 validates
trouble: example.com: the secondary ns2 is behind
`

// The output of a job of dnssec-status is read line by line: the last look counts, lines of another
// form are left out, and a flood of lines is bounded.
func TestKeysAreReadAsTheJobSaidThem(t *testing.T) {
	t.Parallel()
	s := statusOf(api.DNSSECJob{State: jobs.Ended, Outcome: jobs.Failed, Said: "exit 4"}, saidByStatus)
	if len(s.Keys) != 2 || s.Keys[0] != (api.DNSSECKey{Tag: 4711, Role: "KSK", Algorithm: "ECDSAP256SHA256",
		Phase: "active"}) || s.Keys[1].Phase != "old" {
		t.Errorf("keys: %+v", s.Keys)
	}
	if len(s.DS) != 1 || len(s.Servers) != 1 || len(s.Policy) != 1 || !strings.HasPrefix(s.Policy[0], "zsk: policy") {
		t.Errorf("DS %q, servers %q, policy %q", s.DS, s.Servers, s.Policy)
	}
	if s.Said != "trouble: example.com: the secondary ns2 is behind" {
		t.Errorf("its last word: %q", s.Said)
	}
	flood := strings.Repeat("key       4711 KSK RSA active\nserver    x\n", 10_000)
	if s := statusOf(api.DNSSECJob{}, flood); len(s.Keys) != linesMost || len(s.Servers) != linesMost {
		t.Errorf("a flood makes %d keys and %d servers", len(s.Keys), len(s.Servers))
	}
}

const saidByRoll = `== step 1 of 9: look ==
zone      example.com on bind, policy default
key       ZSK 12345, ECDSAP256SHA256
timeline  RFC 7583, in seconds, by the policy
  2026-11-29 06:00:00 UTC  the new key is published
  2026-11-29 08:05:00 UTC  it is known everywhere: Ipub 7500 = Dprp 300
  then      the DS at the parent is exchanged, by people
  +93600 s  after that the old key is removed: Iret 93600 = DprpP 3600
state=start
old=12345
== step 2 of 9: start ==
new=54321
== step 3 of 9: published ==
waiting: the new key 54321 is not known everywhere yet
`

func TestARolloverIsReadAsFarAsItIs(t *testing.T) {
	t.Parallel()
	r := rollOf(api.DNSSECJob{State: jobs.Queued}, "ksk", saidByRoll)
	if r.Old != "12345" || r.New != "54321" || r.Step != "step 3 of 9: published" || len(r.Timeline) != 4 ||
		r.Said != "waiting: the new key 54321 is not known everywhere yet" {
		t.Fatalf("%+v", r)
	}
	if m := r.Timeline[1]; m.At.String() != "2026-11-29T08:05:00.000Z" || m.After != "" {
		t.Errorf("known everywhere: %+v at %s", m, m.At)
	}
	if m := r.Timeline[3]; !m.At.IsZero() || m.After != "+93600 s" {
		t.Errorf("removed: %+v", m)
	}
	r = rollOf(api.DNSSECJob{State: jobs.Ended, Outcome: jobs.Succeeded}, "zsk", saidByRoll+"done\n")
	if r.Said != "done" {
		t.Errorf("the last word of a job that succeeded: %q", r.Said)
	}
}

// A rollover under way is not hidden by a later run that was refused because of it, nor what a look
// said by a later one that has not ended.
func TestARolloverUnderWayStandsBeforeLaterJobs(t *testing.T) {
	t.Parallel()
	one := func(task string, state jobs.State, book string) seenJob {
		id := jobs.NewID(jobs.TaskID(task), "ns1")
		return seenJob{DNSSECJob: api.DNSSECJob{ID: id, State: state}, book: book, name: "a"}
	}
	got := newest([]seenJob{one("0000000002", jobs.Queued, bookRoll), one("0000000009", jobs.Ended, bookRoll),
		one("0000000001", jobs.Ended, bookStatus), one("0000000003", jobs.Ended, bookStatus),
		one("0000000008", jobs.Queued, bookStatus)})
	var ids []string
	for _, j := range got {
		ids = append(ids, string(j.ID.Task())+" "+j.book)
	}
	slices.Sort(ids)
	if text := strings.Join(ids, ", "); text != "0000000002 dnssec, 0000000003 dnssec-status" {
		t.Errorf("shown: %s", text)
	}
}
