package state

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"muster/jobs/queue/form"
	"muster/server/web"
)

// FormEvery is the time between two looks at the form of the data in Redis.
const FormEvery = 5 * time.Second

// A Form keeps a server from changing data that a newer muster has written. Servers and nodes of
// two versions work together while they are upgraded; a server that was forgotten must not.
type Form struct {
	Forms   Forms
	Version string
	Who     func() string // returns the name of this server; empty: it does not listen yet

	newer    atomic.Pointer[form.Error]
	reported atomic.Bool
}

// RunOnce declares the form, or learns that it is a newer one. The error is that of Redis, or a
// *form.Error.
func (f *Form) RunOnce(ctx context.Context) error {
	err := f.Forms.Declare(ctx, f.Version)
	var newer *form.Error
	if errors.As(err, &newer) || err == nil {
		f.newer.Store(newer)
	}
	if err != nil || f.Who() == "" {
		return err
	}
	f.reported.Store(true)
	return f.Forms.ReportServer(ctx, f.name(), f.Version)
}

// name tells apart two servers at one address: one hands over to the other.
func (f *Form) name() string { return fmt.Sprintf("%s pid %d", f.Who(), os.Getpid()) }

// leaveTime bounds the last word of a server.
const leaveTime = time.Second

// Leave says that this server ends. If Redis does not hear it, the server counts as gone soon.
func (f *Form) Leave(ctx context.Context) {
	if !f.reported.Load() || f.Words() != "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	_ = f.Forms.SignOff(ctx, f.name())
}

// Words says why this server changes nothing; empty: it does.
func (f *Form) Words() string {
	if e := f.newer.Load(); e != nil {
		return e.Error()
	}
	return ""
}

// Middleware refuses requests that would change something while the data is of a newer muster.
func (f *Form) Middleware(ctx huma.Context, next func(huma.Context)) {
	words := f.Words()
	if words == "" || ctx.Method() == http.MethodGet {
		next(ctx)
		return
	}
	_, w := humago.Unwrap(ctx)
	web.WriteProblem(w, web.Away(words))
}
