package server

import (
	"context"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
)

// Fsck examines what the queue says of a zone, and with mend puts it right.
type Fsck interface {
	Fsck(ctx context.Context, zone string, mend bool, note string) (jobs.Fsck, error)
}

type (
	fsckInput struct {
		Asked
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Zone string `path:"zone"`
		Body *api.FsckRequest
	}
	fsckOutput struct{ Body jobs.Fsck }
)

// fsck examines a zone. Only mending is an order.
func (s *Server) fsck(ctx context.Context, in *fsckInput) (*fsckOutput, error) {
	var b api.FsckRequest
	if in.Body != nil {
		b = *in.Body
	}
	o := Order{Asked: in.Asked, User: in.User, Body: &b.OrderRequest}
	g, wrong := o.giver("mended")
	wrong = append(wrong, mistakes("path.zone", fleet.CheckZone(in.Zone))...)
	if len(wrong) > 0 {
		return nil, refusal(wrong)
	}
	f, err := s.queue.Care.Fsck.Fsck(ctx, in.Zone, b.Mend, g.note())
	if err != nil {
		return nil, noZone(ctx, s.queue.Conn, err, in.Zone)
	}
	if b.Mend && len(f.Findings) > 0 {
		logOrder(s.log, "zone mended", g, "zone", in.Zone, "findings", len(f.Findings))
	}
	return &fsckOutput{f}, nil
}
