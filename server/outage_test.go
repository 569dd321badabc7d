package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/jobs/queue/keys"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
)

// said are the events of the hub about history, in their order.
func said(t *testing.T, q *queuetest.Queue) (list []string) {
	t.Helper()
	page, err := q.EventPage(t.Context(), keys.HubZone, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Events {
		if strings.HasPrefix(e.Event, "history-") {
			list = append(list, e.Event)
		}
	}
	return list
}

// While SQL is away servers, metrics, commands and events say so, and how full the streams
// are; afterwards the events are in SQL.
func TestHowMuchLongerSQLMayBeAwayIsSaid(t *testing.T) {
	t.Parallel()
	p := sqltest.StartPostgres(t)
	store := openHistory(t, p.Config(t))
	redis := redistest.StartServer(t, smallNodes...).Config()
	w := start(t, setup{redis: &redis, history: store, wrap: func(q *queuetest.Queue) everything { return q }})
	w.submit(run("fw001"))
	w.work("default", succeed)
	waitFor(t, "that all is stored", func() bool {
		pos, err := store.Position(t.Context(), "default")
		page, failed := w.queue.EventPage(t.Context(), "default", pos.Last, 10)
		return err == nil && failed == nil && pos.Last != "" && page.Entries == 0
	})
	p.Kill()
	w.submit(run("fw001"))
	w.work("default", succeed)
	waitFor(t, "the event", func() bool { return len(said(t, w.queue)) == 1 })
	var list api.PauseList
	w.call("GET", "/v1/pauses", nil, &list)
	if list.History == nil {
		t.Fatal("it is not said")
	}
	words := list.History.Words()
	for _, u := range list.History.Streams {
		if u.Zone == "default" && (u.Entries < 2 || u.Entries > 10 || u.AtMost || u.Most != 1_000_000) {
			t.Errorf("the stream of the zone: %+v", u)
		}
	}
	if !strings.Contains(words, "history is not written since ") || !strings.Contains(words, "% of what Redis holds") {
		t.Errorf("it says %q", words)
	}
	if _, text := w.raw("GET", "/metrics", nil, nil); !strings.Contains(string(text), "muster_history_away 1\n") ||
		!strings.Contains(string(text), `muster_history_backlog_ratio{zone="default"} `) {
		t.Errorf("metrics: %s", text)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end", func() bool { return fmt.Sprint(said(t, w.queue)) == "[history-away history-back]" })
	if a, err := w.server.AwayHistory(t.Context()); a != nil || err != nil {
		t.Errorf("afterwards: %+v, %v", a, err)
	}
}

func TestTheWordsOfATimeWithoutHistory(t *testing.T) {
	t.Parallel()
	at := jobs.Time{Time: time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)}
	for _, test := range []struct {
		streams []api.Unstored
		want    string
	}{
		{nil, "history is not written since 2026-11-22T03:00:00.000Z: gone"},
		{[]api.Unstored{{Zone: "eu", Entries: 5, Most: 100, Share: .05},
			{Zone: "us", Entries: 123_456, Most: 1_000_000, Share: .123456}},
			"history is not written since 2026-11-22T03:00:00.000Z: gone; 12.3 % of what Redis holds of the events " +
				"of zone us is used (123456 of about 1000000 entries), and what is more will be lost"},
		{[]api.Unstored{{Zone: "eu", Entries: 101, Most: 100, Share: 1.01, AtMost: true}},
			"history is not written since 2026-11-22T03:00:00.000Z: gone; at most 101 % of what Redis holds of the " +
				"events of zone eu is used (101 of about 100 entries): events are being lost"},
	} {
		if got := (api.AwayHistory{Since: at, Note: "gone", Streams: test.streams}).Words(); got != test.want {
			t.Errorf("it says %q\nwant %q", got, test.want)
		}
	}
}
