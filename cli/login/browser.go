package login

import (
	"context"
	"net/http"
	"time"

	"muster/api"
	"muster/cli"
)

// browser prints a link that logs a browser in.
func browser(ctx context.Context, s *cli.Session) error {
	var l api.LoginLink
	err := s.Do(ctx, cli.Call{Method: http.MethodPost, Path: "/v1/login/links",
		Bound: cli.CallTimeout}, &l)
	if err != nil {
		return err
	}
	s.Say("open this link in your browser until %s; it works once, and makes the browser %s",
		l.Expires.Local().Format(time.TimeOnly), cli.Cell(l.Principal))
	if s.JSON {
		return s.WriteJSON(l)
	}
	return s.Write(cli.Cell(l.URL) + "\n")
}
