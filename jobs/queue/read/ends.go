package read

import (
	"context"
	"strconv"

	"muster/jobs"
	"muster/jobs/queue/keys"
)

// Ends is how much has ended in a zone since its Redis knows it. The scripts count it where
// it happens, so that it does not depend on who looks, and when.
type Ends struct {
	Jobs  map[jobs.Outcome]int64
	Tasks int64 // a task of several zones counts in each
}

// Ends returns how much has ended in a zone.
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
		text, _ := v.(string) // none yet
		numbers[i], _ = strconv.ParseInt(text, 10, 64)
	}
	e := Ends{Jobs: map[jobs.Outcome]int64{}, Tasks: numbers[0]}
	for i, o := range outcomes {
		e.Jobs[o] = numbers[i+1]
	}
	return e, nil
}
