package work

import (
	"muster/jobs"
	"muster/jobs/queue/codec"
	"muster/trust"
)

// proofOf returns the proof of the node for a result; empty: none. A job that is given back was not
// touched, and nobody asks for a proof of that.
func (q *Work) proofOf(s jobs.Step, r jobs.Result) string {
	if q.prove == nil || r.Kind == jobs.KindBack {
		return ""
	}
	t := trust.Testimony{Kind: string(r.Kind), Job: r.Job, Token: r.Token, Output: codec.SaidOf(r)}
	if r.Kind == jobs.KindEnd {
		t.Kind, t.Words = codec.SaidEnd, codec.EndWords(s.Node+"/"+s.Slot, r)
	} else {
		t.Words = codec.AgainWords(r)
	}
	return q.prove(t)
}
