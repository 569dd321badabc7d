package read

import (
	"context"
	"strconv"

	"muster/jobs"
	"muster/jobs/queue/keys"
)

// Ends counts the jobs and tasks that have ended in a zone since its Redis was set up. The scripts
// count at the moment of the end, so the numbers do not depend on when somebody reads them.
type Ends struct {
	Jobs  map[jobs.Outcome]int64
	Tasks int64 // a task of several zones counts in each of them
}

// Ends returns the counts of ended jobs and tasks of a zone.
func (q *Zones) Ends(ctx context.Context, zone string) (Ends, error) {
	outcomes := jobs.Outcomes()
	fields := []string{"ended:tasks"}
	for _, o := range outcomes {
		fields = append(fields, "ended:"+string(o))
	}
	list, err := q.c.Redis().HMGet(ctx, keys.Zone(zone, "zone", ""), fields...).Result()
	if err != nil {
		return Ends{}, q.c.Say("ends", err)
	}
	numbers := make([]int64, len(list))
	for i, v := range list {
		text, _ := v.(string) // missing until the first one ends
		numbers[i], _ = strconv.ParseInt(text, 10, 64)
	}
	e := Ends{Jobs: map[jobs.Outcome]int64{}, Tasks: numbers[0]}
	for i, o := range outcomes {
		e.Jobs[o] = numbers[i+1]
	}
	return e, nil
}
