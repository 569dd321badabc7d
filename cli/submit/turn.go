package submit

import (
	"context"
	"net/url"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/jobs"
	"muster/jobs/lane"
)

// turnFlags say how a task behaves towards other tasks of the same key.
type turnFlags struct{ supersedes, lane, mode string }

func (f *turnFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.supersedes, "supersedes", "",
		"end the jobs that older tasks with this `key` have queued on the same hosts")
	f.addLane(c)
	c.MarkFlagsMutuallyExclusive("lane", "hold")
	c.MarkFlagsMutuallyExclusive("lane", "sign")
}

func (f *turnFlags) addLane(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.lane, "lane", "",
		"begin in the order of the tasks with this `key`, such as rules/acme (muster lanes)")
	fl.StringVar(&f.mode, "lane-mode", "", "how it waits in its lane, a `mode`: "+lane.Modes)
	cli.CompleteFlag(c, "lane-mode", string(lane.Serial), string(lane.Latest), string(lane.Gate),
		string(lane.Pipeline), string(lane.Parallel)+"=2")
}

// query returns the query of the submit. It has a mode without a lane, too: the server says what is
// missing.
func (f turnFlags) query() url.Values {
	q := url.Values{}
	if f.lane != "" {
		q.Set("lane", f.lane)
	}
	if f.mode != "" {
		q.Set("lane_mode", f.mode)
	}
	return q
}

// say says why a task waits in its lane, if it does.
func (f turnFlags) say(ctx context.Context, s *cli.Session, t jobs.TaskInfo) error {
	if f.lane == "" || t.State != jobs.TaskSubmitting {
		return nil
	}
	var l api.LaneList
	query := url.Values{"key": {f.lane}, "task": {string(t.Task)}}
	if err := s.Client.Get(ctx, "/v1/lanes", query, &l); err != nil {
		return err
	}
	for _, one := range l.Lanes {
		for _, place := range one.Tasks {
			if place.Task == t.Task && place.Why != "" {
				s.Say("lane %s: %s", cli.Cell(one.Key), cli.Cell(place.Why))
			}
		}
	}
	return nil
}
