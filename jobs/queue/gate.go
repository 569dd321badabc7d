package queue

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// gateSteps is how many steps of a job are looked through for a gate that was answered;
// no runbook has more.
const gateSteps = 100

// standMax is how many jobs that stand at a gate are named.
const standMax = 10

func gateField(id jobs.ID, step int) string {
	return "gate:" + strconv.Itoa(step) + ":" + id.Host()
}

// Gate is how the gate at which a job stands was answered; without a word it was not.
func (q *Queue) Gate(ctx context.Context, zone string, id jobs.ID, step int) (jobs.GateAnswer,
	error) {
	text, err := q.rdb.HGet(ctx, zoneKey(zone, "task:", string(id.Task())),
		gateField(id, step)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return jobs.GateAnswer{}, q.say("gate", err)
	}
	return jobs.ReadGateAnswer(text), nil
}

// addAnswers adds to jobs at a gate how it was answered, if it was.
func (q *Queue) addAnswers(ctx context.Context, zone string, list []jobs.JobInfo) error {
	var at []int
	var fields []string
	for i, j := range list {
		if j.Gate != nil {
			at, fields = append(at, i), append(fields, gateField(j.ID, j.Gate.Step))
		}
	}
	if len(at) == 0 {
		return nil
	}
	task := list[0].ID.Task() // of all of them
	v, err := q.rdb.HMGet(ctx, zoneKey(zone, "task:", string(task)), fields...).Result()
	if err != nil {
		return q.say("gates", err)
	}
	for n, i := range at {
		list[i].Gate.Answer = jobs.ReadGateAnswer(textOf(v, n)).Note
	}
	return nil
}

// CloseGate says of a gate that nobody has answered it in time. If somebody has, just now,
// that counts, and is returned.
func (q *Queue) CloseGate(ctx context.Context, zone string, id jobs.ID, step int) (jobs.GateAnswer,
	error) {
	late := jobs.GateAnswer{Word: jobs.GateLate, Note: "nobody opened it in time"}
	c, err := q.control(ctx, zone, gateTurn(id, step, late))
	if err == nil && c.status == "already" {
		return jobs.ReadGateAnswer(c.before), nil
	}
	return late, err
}

// gateTurn is the call that answers a gate.
func gateTurn(id jobs.ID, step int, a jobs.GateAnswer) turn {
	return turn{verb: "gate", object: string(id), number: strconv.Itoa(step),
		note: string(a.Word) + " " + a.Note}
}

// AnswerGates opens or refuses the gates at which jobs of a task stand: all of them, or
// those on some hosts. One that was answered before keeps its answer. A host on which the
// task has no job is an error before anything is done.
func (q *Queue) AnswerGates(ctx context.Context, id jobs.TaskID, hosts []string,
	a jobs.GateAnswer) (jobs.Answers, error) {
	out := jobs.Answers{Task: id, Answered: []jobs.Answered{}, Elsewhere: []jobs.Elsewhere{},
		Stand: []jobs.ID{}}
	named := map[string]bool{}
	var ids []jobs.ID
	for _, host := range hosts {
		named[host] = true
		ids = append(ids, jobs.NewID(id, host))
	}
	if len(ids) > 0 {
		if _, err := q.zonesOf(ctx, ids); err != nil {
			return out, err
		}
	}
	zones, err := q.taskZones(ctx, id)
	for i := 0; err == nil && i < len(zones); i++ {
		err = q.eachChunk(ctx, zones[i], id, 0, func(chunk []string) error {
			list, err := q.jobs(ctx, zones[i], id, chunk)
			for n := 0; err == nil && n < len(list); n++ {
				if j := list[n]; named[j.Host] || len(named) == 0 && j.Gate != nil {
					err = q.answerOne(ctx, zones[i], j, a, &out)
				} else {
					passOver(j, &out)
				}
			}
			return err
		})
	}
	return out, err
}

// passOver counts a job that is not answered.
func passOver(j jobs.JobInfo, out *jobs.Answers) {
	switch {
	case j.State == jobs.Ended:
	case j.Gate == nil:
		out.Rest++
	case len(out.Stand) < standMax && j.Gate.Answer == "":
		out.Stand = append(out.Stand, j.ID)
	}
}

// answerOne answers the gate of a job, or tells where the job is.
func (q *Queue) answerOne(ctx context.Context, zone string, j jobs.JobInfo, a jobs.GateAnswer,
	out *jobs.Answers) error {
	did := jobs.Answered{Job: j.ID, Word: a.Word, Note: a.Note}
	if j.Gate == nil {
		return q.passed(ctx, zone, j, out)
	}
	did.Step, did.Name = j.Gate.Step, j.Gate.Name
	c, err := q.control(ctx, zone, gateTurn(j.ID, did.Step, a))
	switch {
	case err != nil:
		return err
	case c.status == "elsewhere": // it went on, or ended, between the two looks
		j, err := q.Job(ctx, j.ID)
		if err != nil {
			return err
		}
		return q.passed(ctx, zone, j, out)
	case c.status == "already":
		before := jobs.ReadGateAnswer(c.before)
		did.Already, did.Word, did.Note = true, before.Word, before.Note
	}
	out.Answered = append(out.Answered, did)
	return nil
}

// passed tells of a job that stands at no gate which answer it had last, or where it is.
func (q *Queue) passed(ctx context.Context, zone string, j jobs.JobInfo,
	out *jobs.Answers) error {
	fields := make([]string, gateSteps)
	for step := range fields {
		fields[step] = gateField(j.ID, step)
	}
	v, err := q.rdb.HMGet(ctx, zoneKey(zone, "task:", string(j.ID.Task())), fields...).Result()
	if err != nil {
		return q.say("gate", err)
	}
	for step := len(v) - 1; step >= 0; step-- {
		if text, ok := v[step].(string); ok {
			a := jobs.ReadGateAnswer(text)
			out.Answered = append(out.Answered, jobs.Answered{Job: j.ID, Step: step, Word: a.Word,
				Note: a.Note, Already: true})
			return nil
		}
	}
	out.Elsewhere = append(out.Elsewhere, jobs.Elsewhere{Job: j.ID, State: j.State,
		Outcome: j.Outcome, Step: j.Step})
	return nil
}

// GatedTasks lists the tasks with gates that have not ended, the oldest first.
func (q *Queue) GatedTasks(ctx context.Context) ([]jobs.TaskID, error) {
	zones, err := q.Zones(ctx)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, zone := range zones {
		ids, err := q.rdb.ZRange(ctx, zoneKey(zone, "open", ""), 0, -1).Result()
		if err != nil {
			return nil, q.say("gates", err)
		}
		all = append(all, ids...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	gated := make([]*redis.SliceCmd, len(all))
	_, err = q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range all {
			gated[i] = p.HMGet(ctx, hubKey("task:", id), "gates")
		}
		return nil
	})
	if err != nil {
		return nil, q.say("gates", err)
	}
	out := []jobs.TaskID{}
	for i, id := range all {
		if is, _ := strconv.ParseBool(textOf(gated[i].Val(), 0)); is {
			out = append(out, jobs.TaskID(id))
		}
	}
	return out, nil
}
