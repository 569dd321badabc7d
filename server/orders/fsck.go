package orders

import (
	"context"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/server/web"
)

// Fsck compares the records of a zone, and with mend corrects differences.
type Fsck interface {
	Fsck(ctx context.Context, zone string, mend bool, note string) (jobs.Fsck, error)
}

type (
	fsckInput struct {
		web.Asked
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Zone string `path:"zone"`
		Body *api.FsckRequest
	}
	fsckOutput struct{ Body jobs.Fsck }
)

// FsckRoutes compares the records of a zone.
type FsckRoutes struct {
	Examine Fsck
	Zones   Listing
	Log     hclog.Logger
}

// Routes registers the routes of the resource.
func (s FsckRoutes) Routes(api huma.API) {
	huma.Register(api, web.Post("/v1/zones/{zone}/fsck",
		"Check that the parts of the queue agree, and mend them"), s.fsck)
}

// fsck examines a zone. Only mending is an order.
func (s FsckRoutes) fsck(ctx context.Context, in *fsckInput) (*fsckOutput, error) {
	var b api.FsckRequest
	if in.Body != nil {
		b = *in.Body
	}
	o := web.Order{Asked: in.Asked, User: in.User, Body: &b.OrderRequest}
	g, wrong := o.Giver("mended")
	wrong = append(wrong, web.Mistakes("path.zone", fleet.CheckZone(in.Zone))...)
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	f, err := s.Examine.Fsck(ctx, in.Zone, b.Mend, g.Note())
	if err != nil {
		return nil, noZone(ctx, s.Zones, err, in.Zone)
	}
	if b.Mend && len(f.Findings) > 0 {
		web.LogOrder(s.Log, "zone mended", g, "zone", in.Zone, "findings", len(f.Findings))
	}
	return &fsckOutput{f}, nil
}
