package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
)

// AddReason adds the flag --reason.
func AddReason(c *cobra.Command, reason *string) {
	c.Flags().StringVar(reason, "reason", "", "`why`, for those who read it later")
}

// ChangesNothing follows the present state in the answer to an order that was repeated.
const ChangesNothing = " (this order and its reason change nothing)"

// NeedReason returns an error if an order that undoes a precaution has no reason.
func NeedReason(reason, example string) error {
	if strings.TrimSpace(reason) == "" {
		return fmt.Errorf("--reason is missing: say why it is safe now, such as --reason '%s'", example)
	}
	return nil
}

// Order gives an order to the server. Every order can be repeated.
func (s *Session) Order(ctx context.Context, path, reason string, answer any) error {
	return s.Give(ctx, path, api.OrderRequest{Reason: reason, As: s.As}, answer)
}

// Give gives an order with a body of its own; a user may repeat it.
func (s *Session) Give(ctx context.Context, path string, body, answer any) error {
	return s.GiveOr(ctx, path, body, answer, "give it again, which does nothing twice")
}

// GiveOr gives an order, and adds the advice if it is not known whether the order was accepted.
func (s *Session) GiveOr(ctx context.Context, path string, body, answer any, advice string) error {
	q := Call{Method: http.MethodPost, Path: path, Bound: SubmitTimeout, Body: body}
	err := s.Do(ctx, q, answer)
	var away *AwayError
	if err == nil || !Passing(err) || errors.As(err, &away) && !away.Heard {
		return err
	}
	return fmt.Errorf("%w\nit is not known whether the server took the order: %s", err, advice)
}
