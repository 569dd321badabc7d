package orders

import (
	"context"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Gates answers the gates at which jobs wait.
type Gates struct {
	c     *queue.Conn
	tasks Tasks
}

// NewGates returns the gates behind a connection.
func NewGates(c *queue.Conn, tasks Tasks) *Gates { return &Gates{c, tasks} }

// gateSteps is the number of steps of a job that are searched for an answered gate; no runbook has
// more.
const gateSteps = 100

// standMax bounds the jobs at a gate that are named.
const standMax = 10

// AnswerGates opens or refuses the gates at which jobs of a task wait: all of them, or those on
// some hosts. A gate with an answer keeps it. A host on which the task has no job is an error
// before anything is done. prove, which may be nil, signs the answer for a job at a step.
func (q *Gates) AnswerGates(ctx context.Context, id jobs.TaskID, hosts []string,
	a jobs.GateAnswer, prove Prover) (jobs.Answers, error) {
	out := jobs.Answers{Task: id, Answered: []jobs.Answered{}, Elsewhere: []jobs.Elsewhere{},
		Stand: []jobs.ID{}}
	named := map[string]bool{}
	var ids []jobs.ID
	for _, host := range hosts {
		named[host] = true
		ids = append(ids, jobs.NewID(id, host))
	}
	if len(ids) > 0 {
		if _, err := q.c.Places.ZonesOf(ctx, ids); err != nil {
			return out, err
		}
	}
	zones, err := q.c.Places.TaskZones(ctx, id)
	for i := 0; err == nil && i < len(zones); i++ {
		err = q.c.Places.EachChunk(ctx, zones[i], id, 0, func(chunk []string) error {
			list, err := q.tasks.JobsOn(ctx, zones[i], id, chunk)
			for n := 0; err == nil && n < len(list); n++ {
				if j := list[n]; named[j.Host] || len(named) == 0 && j.Gate != nil {
					err = q.answerOne(ctx, zones[i], j, answer{a, prove}, &out)
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

// answerOne answers the gate of a job, or notes where else the job is.
func (q *Gates) answerOne(ctx context.Context, zone string, j jobs.JobInfo, a answer,
	out *jobs.Answers) error {
	did := jobs.Answered{Job: j.ID, Word: a.Word, Note: a.Note}
	if j.Gate == nil {
		return q.passed(ctx, zone, j, out)
	}
	did.Step, did.Name = j.Gate.Step, j.Gate.Name
	if err := q.vouch(ctx, zone, j, a); err != nil {
		return err
	}
	c, err := q.c.Turn(ctx, zone, codec.GateTurn(j.ID, did.Step, a.GateAnswer))
	switch {
	case err != nil:
		return err
	case c.Status == "elsewhere": // it passed the gate, or ended, between the two looks
		j, err := q.tasks.Job(ctx, j.ID)
		if err != nil {
			return err
		}
		return q.passed(ctx, zone, j, out)
	case c.Status == "already":
		before := jobs.ReadGateAnswer(c.Before)
		did.Already, did.Word, did.Note = true, before.Word, before.Note
	}
	out.Answered = append(out.Answered, did)
	return nil
}

// A Prover signs the answer at a gate of a job, at a step.
type Prover func(id jobs.ID, step int, a jobs.GateAnswer) (string, error)

// An answer is given to several jobs, and signed for each of them.
type answer struct {
	jobs.GateAnswer
	prove Prover // nil: nobody signs it
}

// vouch stores the signature of an answer, before the answer makes the job due.
func (q *Gates) vouch(ctx context.Context, zone string, j jobs.JobInfo, a answer) error {
	if a.prove == nil {
		return nil
	}
	proof, err := a.prove(j.ID, j.Gate.Step, a.GateAnswer)
	if err != nil || proof == "" {
		return err
	}
	return q.c.Say("gate", q.c.Redis().HSet(ctx, keys.Zone(zone, "task:", string(j.ID.Task())),
		codec.ProofField(j.ID, j.Gate.Step, a.GateAnswer), proof).Err())
}

// passed notes, for a job that waits at no gate, the last answer that it got, or where it is.
func (q *Gates) passed(ctx context.Context, zone string, j jobs.JobInfo,
	out *jobs.Answers) error {
	fields := make([]string, gateSteps)
	for step := range fields {
		fields[step] = codec.GateField(j.ID, step)
	}
	v, err := q.c.Redis().HMGet(ctx, keys.Zone(zone, "task:", string(j.ID.Task())), fields...).Result()
	if err != nil {
		return q.c.Say("gate", err)
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

// GatedTasks returns the open tasks with gates, the oldest first.
func (q *Gates) GatedTasks(ctx context.Context) ([]jobs.TaskID, error) {
	zones, err := q.c.Zones(ctx)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, zone := range zones {
		ids, err := q.c.Redis().ZRange(ctx, keys.Zone(zone, "open", ""), 0, -1).Result()
		if err != nil && !queue.Away(err) {
			return nil, q.c.Say("gates", err)
		}
		all = append(all, ids...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	gated := make([]*redis.SliceCmd, len(all))
	_, err = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range all {
			gated[i] = p.HMGet(ctx, keys.Hub("task:", id), "gates")
		}
		return nil
	})
	if err != nil {
		return nil, q.c.Say("gates", err)
	}
	out := []jobs.TaskID{}
	for i, id := range all {
		if is, _ := strconv.ParseBool(codec.TextOf(gated[i].Val(), 0)); is {
			out = append(out, jobs.TaskID(id))
		}
	}
	return out, nil
}
