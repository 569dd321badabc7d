package tasks

import (
	"context"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/jobs/queue/read"
	"muster/server/web"
)

type (
	outputInput struct {
		Job  string `path:"job"`
		From int64  `query:"from" minimum:"0" doc:"first byte of the output to return"`
		Wait string `query:"wait" doc:"time to wait for more output or the end of the job; at most 1m"`
	}
	outputOutput struct {
		Type  string `header:"Content-Type"`
		Next  int64  `header:"Muster-Next" doc:"the value of from for the next request: bytes of output so far"`
		Ended bool   `header:"Muster-Ended" doc:"no more output follows"`
		Body  []byte
	}
)

// output answers with the bytes of a host as they came. They are hostile: a browser must not run
// them.
func (s JobRoutes) output(ctx context.Context, in *outputInput) (*outputOutput, error) {
	id, err := jobs.ParseID(in.Job)
	wrong := web.Mistakes("path.job", err)
	wait, err := web.ParseWait(in.Wait)
	if wrong = append(wrong, web.Mistakes("query.wait", err)...); len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	out := &outputOutput{Type: "application/octet-stream"}
	zone, err := s.Reads.Jobs.JobZone(ctx, id)
	if err != nil {
		if _, err = s.Find.OrPast(ctx, id, err); err != nil {
			return nil, s.Find.Gone(ctx, id.Task(), err)
		}
		said, err := s.Find.History.Output(ctx, id)
		if err != nil {
			return nil, web.Problem(err)
		}
		out.Body, out.Next, out.Ended = said[min(in.From, int64(len(said))):], int64(len(said)), true
		return out, nil
	}
	var said jobs.Output
	heard := map[jobs.ID]*read.Heard{id: {}}
	err = s.Until.Await(ctx, wait, func() (bool, error) {
		// The state comes first: the output of a job that has ended is complete.
		state, err := s.Reads.Jobs.JobsIn(ctx, zone, []jobs.ID{id})
		if err != nil {
			return false, err
		}
		news, err := s.Reads.Outputs.Listen(ctx, zone, heard)
		said = append(said, news[id].From(in.From)...)
		out.Ended = state[0].State == jobs.Ended
		return out.Ended || len(said) > 0, err
	})
	if err != nil {
		return nil, web.Problem(err)
	}
	out.Next, out.Body = max(in.From, said.End()), plain(said, in.From)
	return out, nil
}

// plain returns an output from a place on, with a line for each gap.
func plain(o jobs.Output, at int64) []byte {
	out := []byte{}
	for _, p := range o {
		if p.At > at {
			if n := len(out); n > 0 && out[n-1] != '\n' {
				out = append(out, '\n')
			}
			out = append(out, remote.LeftOut(p.At-at)+"\n"...)
		}
		out, at = append(out, p.Data...), p.End()
	}
	return out
}
