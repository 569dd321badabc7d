package queue_test

import (
	"errors"
	"strings"
	"testing"

	"muster/jobs/queue"
	"muster/testkit/redistest"
)

// A record of a token that cannot be read authenticates nobody, hides no other token, has a name
// with which it can be removed, and blocks nobody.
func TestABadRecordOfATokenHidesNoOther(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q, ctx := open(t, w, ""), t.Context()
		for _, name := range []string{"bob", "alice"} {
			if err := q.CreateToken(ctx, name, "secret of "+name); err != nil {
				t.Fatal(err)
			}
		}
		key, raw := "muster:{hub}:tokens", redistest.Raw(t, w.cfg, "hub")
		for hash, text := range raw.HGetAll(ctx, key).Val() {
			if strings.Contains(text, "bob") {
				raw.HSet(ctx, key, hash, text[:5])
			}
		}
		raw.HSet(ctx, key, "by hand", `{"name":"a b"}`, "\x1b", "")
		list, err := q.Tokens(ctx)
		if err != nil || len(list) != 4 || list[0].Name != "alice" || list[0].Wrong != "" {
			t.Fatalf("tokens are %+v, %v", list, err)
		}
		if _, err := q.FindToken(ctx, "secret of bob"); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("the token whose record is bad: %v", err)
		}
		if found, err := q.FindToken(ctx, "secret of alice"); err != nil || found.Name != "alice" {
			t.Errorf("the good token: %+v, %v", found, err)
		}
		for _, bad := range list[1:] {
			if bad.Wrong == "" || !strings.HasPrefix(bad.Name, "unreadable-") {
				t.Errorf("listed as %+v", bad)
			}
			if err := q.RemoveToken(ctx, bad.Name); err != nil {
				t.Error(err)
			}
		}
		if err := q.CreateToken(ctx, "bob", "another"); err != nil {
			t.Error(err)
		}
		if list, err := q.Tokens(ctx); err != nil || len(list) != 2 {
			t.Errorf("after it was put right: %+v, %v", list, err)
		}
	})
}
