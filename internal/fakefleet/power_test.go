package fakefleet

import (
	"strings"
	"testing"
	"time"
)

const readBoot = "cat /proc/sys/kernel/random/boot_id"

func TestAHostThatRebootsIsAwayAndComesBackInAnotherBoot(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 2, BootTakes: 200 * time.Millisecond})
	c := r.dial(0)
	before := r.exec(c, readBoot, nil).out
	r.launch(c, "sleep 60")
	r.await("the sleep", started(2))
	// A runbook reboots in this way: outside of the session, which ends normally.
	r.exec(c, "setsid sh -c 'sleep 0.05; exec reboot' > /dev/null 2>&1 < /dev/null &", nil)
	if end := r.await("the end of what ran", ended(2)); end.Signal != "KILL" {
		t.Errorf("what ran there ended with %+v", end)
	}
	outages := r.Outages()
	if len(outages) != 1 || outages[0].Host != r.hosts[0].Name || !outages[0].Up.After(outages[0].Down) {
		t.Fatalf("away: %+v", outages)
	}
	for r.tryDial(0) != nil {
		if time.Since(outages[0].Up) > 10*time.Second {
			t.Fatal("it does not come back")
		}
	}
	if now := time.Now(); now.Before(outages[0].Up) {
		t.Errorf("it was reached %s before it was up", outages[0].Up.Sub(now))
	}
	after := r.exec(r.dial(0), readBoot, nil).out
	if len(after) != 37 || after == before || strings.ToLower(after) != after {
		t.Errorf("boot ids %q and %q", before, after)
	}
	if got := r.exec(r.dial(1), readBoot, nil); got.code != 0 || len(r.Outages()) != 1 {
		t.Errorf("the other host: %+v, %+v", got, r.Outages())
	}
}

func TestAHostThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	r := start(t, Config{Hosts: 1, BootTakes: time.Millisecond, Personality: all(NoReturn)})
	r.launch(r.dial(0), "reboot")
	for len(r.Outages()) == 0 {
		if t.Context().Err() != nil {
			t.Fatal("it does not go down")
		}
	}
	if o := r.Outages()[0]; !o.Up.IsZero() || r.tryDial(0) == nil {
		t.Errorf("away: %+v", o)
	}
}

func TestOutagesThatMeet(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	for _, tt := range []struct {
		a, b Outage
		want bool
	}{
		{Outage{Down: at(1), Up: at(3)}, Outage{Down: at(2), Up: at(4)}, true},
		{Outage{Down: at(1), Up: at(3)}, Outage{Down: at(3), Up: at(4)}, false},
		{Outage{Down: at(1), Up: at(9)}, Outage{Down: at(3), Up: at(4)}, true},
		{Outage{Down: at(1)}, Outage{Down: at(3), Up: at(4)}, true},
		{Outage{Down: at(5)}, Outage{Down: at(3), Up: at(4)}, false},
	} {
		if tt.a.Meets(tt.b) != tt.want || tt.b.Meets(tt.a) != tt.want {
			t.Errorf("%+v and %+v: want %t", tt.a, tt.b, tt.want)
		}
	}
}
