package herald

import (
	"context"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/outliers"
	"muster/jobs/queue/hub"
	"muster/jobs/staff"
	"muster/notify"
)

// A node that muster has set aside is told once, with the numbers, and once more when a person has
// resumed it. A node that a person has paused is not told.
func TestANodeThatIsSetAsideIsTold(t *testing.T) {
	t.Parallel()
	note := outliers.Outlier{Node: "n1", Runbook: "firewall", Jobs: 30, Failed: 20, Expected: 1}.Note()
	now := []jobs.Node{{ID: "n1", State: "running"}, {ID: "n2", State: "running"}}
	w := &Watch{Nodes: func(context.Context) ([]jobs.Node, error) { return now, nil },
		Staff:     func(context.Context) (map[string]*staff.Zone, error) { return nil, nil },
		Schedules: func(context.Context) ([]hub.Schedule, error) { return nil, nil },
		Held:      func(context.Context, time.Time) ([]jobs.TaskID, error) { return nil, nil }}
	told := func() (list []notify.Signal) {
		t.Helper()
		all, next, err := w.look(t.Context(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		w.state = next
		for _, s := range all {
			if s.What == notify.NodeAside {
				list = append(list, s)
			}
		}
		return list
	}
	if list := told(); len(list) != 2 || !list[0].Over || !list[1].Over {
		t.Errorf("at first: %+v", list)
	}
	now[0].Paused, now[1].Paused = &jobs.Pause{Note: note}, &jobs.Pause{Note: "paused by alice: cables"}
	if list := told(); len(list) != 1 || list[0].Object != "n1" || list[0].Note != note || list[0].Over {
		t.Errorf("set aside: %+v", list)
	}
	if list := told(); len(list) != 0 {
		t.Errorf("it is told again: %+v", list)
	}
	now[0].Paused = nil
	if list := told(); len(list) != 1 || list[0].Object != "n1" || !list[0].Over {
		t.Errorf("resumed: %+v", list)
	}
}
