package historian

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/history"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue/keys"
	"muster/jobs/queue/read"
	"muster/trust"
)

// A prover holds what Redis says of jobs against the proofs of the nodes. A writer to Redis can
// invent an end or an event, but no proof.
type prover struct {
	Proofs
	log hclog.Logger

	rules *trust.Rules // for which it has the judge
	judge *trust.Judge
	told  map[string]bool // tasks of which people were told
}

// Alerts reach people who watch a zone.
type Alerts interface {
	Alert(ctx context.Context, zone string, a jobs.Alert) error
}

// toldMax bounds the tasks that a prover remembers.
const toldMax = 1000

// current returns what judges now; nil: nobody is asked for proofs.
func (p *prover) current() (*trust.Judge, error) {
	if p.Trust == nil {
		return nil, nil
	}
	rules, err := p.Trust()
	if err != nil {
		return nil, fmt.Errorf("history waits, because this server cannot read whom it trusts: %w", err)
	}
	if rules != p.rules {
		p.rules, p.judge = rules, rules.Judge()
	}
	return p.judge, nil
}

// mark returns by whose word a job has ended, and the part of its output in Redis that belongs to
// that end. The error says why it is not proven.
func (p *prover) mark(j *trust.Judge, e read.Ending, said read.Entries) (api.Proof, jobs.Output,
	error) {
	if j == nil {
		return "", said.All(), nil
	}
	if e.Proof == "" && e.ByQueue {
		return api.ByQueue, said.All(), nil
	}
	if err := j.Check(e.Said, e.Proof, e.Job.Finished.Time); err != nil {
		return api.NotProven, said.All(), err
	}
	token, hash := trust.SaidIn(e.Proof)
	own, stored := said.Of(token)
	if stored != nil && trust.OutputHash(stored) != hash {
		return api.NotProven, said.All(), errors.New("its output is not what the node has sent")
	}
	if e.Job.Attempt > 1 {
		return api.ByNode, said.All(), nil // earlier attempts have said something, too
	}
	return api.ByNode, own, nil
}

// events marks the events of a zone by which nodes say something of jobs: the detail proof is node
// or none. An end is as good as the job that ended, if it says the same.
func (p *prover) events(ctx context.Context, zone string, list []jobs.Happening,
	ended []api.PastJob) error {
	j, err := p.current()
	if err != nil {
		return err
	}
	ends := make(map[string]api.PastJob, len(ended))
	for _, e := range ended {
		ends[string(e.ID)] = e
	}
	for i := range list {
		h := &list[i]
		detail, _ := h.Detail.(map[string]any)
		_, has := detail["proof"]
		why, asked := p.doubt(j, *h, ends)
		if !asked && !has {
			continue
		}
		detail = maps.Clone(detail)
		if delete(detail, "proof"); asked && j != nil {
			if detail == nil {
				detail = map[string]any{}
			}
			detail["proof"] = string(api.ByNode)
			if why != nil {
				detail["proof"] = string(api.NotProven)
				p.tell(ctx, zone, h.Object, h.Event, why)
			}
		}
		h.Detail = detail
	}
	return nil
}

// doubt says what is wrong with an event; asked: a node says something by it.
func (p *prover) doubt(j *trust.Judge, h jobs.Happening, ends map[string]api.PastJob) (why error,
	asked bool) {
	if j == nil || h.Zone == keys.HubZone {
		return nil, false
	}
	if t, proof, ok := read.SaidOf(h); ok {
		return j.Check(t, proof, h.At.Time), true
	}
	if h.Event != "end" && h.Event != "settle" {
		return nil, false
	}
	e, known := ends[h.Object]
	switch claims := history.EndOf(h); {
	case !known, e.Proof == api.ByQueue && claims.Outcome == e.Outcome:
		return nil, false
	case claims.Outcome != e.Outcome:
		return fmt.Errorf("it says %s, and the job ended %s", wording.Quote(string(claims.Outcome)),
			e.Outcome), true
	case e.Proof == api.NotProven:
		return errors.New("the end of its job is not proven"), true
	}
	return nil, true
}

// tell tells people once for each task that something of it is not proven.
func (p *prover) tell(ctx context.Context, zone, object, what string, why error) {
	p.Doubts()
	task := string(history.TaskOf(object))
	if p.told[task] {
		return
	}
	if p.told == nil || len(p.told) >= toldMax {
		p.told = map[string]bool{}
	}
	p.told[task] = true
	p.log.Error("what Redis says of a job is not proven: somebody may have written it, or a node has "+
		"no node.key, or an earlier version", "zone", zone, "object", object, "what", what, "why", why)
	err := p.Alerts.Alert(ctx, zone, jobs.Alert{Event: "not-proven", Object: object,
		Detail: map[string]any{"what": what, "note": wording.ErrorLine(why)}})
	if err != nil {
		p.log.Warn("nobody could be told that something is not proven", "object", object, "error", err)
	}
}

// idsOf lists the ids of jobs in their order.
func idsOf(list []read.Ending) []jobs.ID {
	ids := make([]jobs.ID, len(list))
	for i, e := range list {
		ids[i] = e.Job.ID
	}
	return ids
}
