package login

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"muster/api"
	"muster/cli"
)

// device logs in by a code that a person types in a browser on another machine (RFC 8628).
func device(ctx context.Context, s *cli.Session) (t api.LoginToken, err error) {
	var d api.LoginDevice
	err = s.Do(ctx, cli.Call{Method: http.MethodPost, Path: "/login/device", Body: struct{}{},
		Bound: cli.CallTimeout}, &d)
	if err != nil {
		return t, err
	}
	s.Say("open %s in any browser, and type the code %s there", cli.Cell(d.URL), cli.Cell(d.UserCode))
	if d.WholeURL != "" {
		s.Say("or open %s, and compare the code", cli.Cell(d.WholeURL))
	}
	ctx, cancel := context.WithDeadline(ctx, d.Expires.Time)
	defer cancel()
	next := time.NewTimer(0)
	defer next.Stop()
	for wait := d.Interval; ; {
		next.Reset(time.Duration(wait) * time.Second)
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return t, errors.New("nobody has typed the code in time: call `muster login --device` again")
			}
			return t, ctx.Err()
		case <-next.C:
		}
		t, slower, err := askDevice(ctx, s, d.Handle)
		if err != nil || t.Token != "" {
			return t, err
		}
		wait = max(wait, slower)
	}
}

// askDevice asks whether the person has typed the code. Without a token it returns for how many
// seconds to wait.
func askDevice(ctx context.Context, s *cli.Session, handle string) (t api.LoginToken, wait int,
	err error) {
	r, err := s.Send(ctx, cli.Call{Method: http.MethodPost, Path: "/login/device/token",
		Body: api.LoginDevice{Handle: handle}, Bound: cli.CallTimeout})
	if err != nil {
		return t, 0, err
	}
	defer r.Body.Close()
	text, err := s.ReadAll(r.Body)
	if err != nil {
		return t, 0, err
	}
	if r.StatusCode == http.StatusAccepted {
		var d api.LoginDevice
		if json.Unmarshal(text, &d) != nil {
			return t, 0, s.Nonsense("its answer cannot be read")
		}
		return t, d.Interval, nil
	}
	if err := json.Unmarshal(text, &t); err != nil || t.Token == "" {
		return t, 0, s.Nonsense("its answer has no session")
	}
	return t, 0, nil
}
