package rights_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"muster/server/rights"
)

// A request that nobody has identified reaches no route, not even one that anybody may call.
func TestWhatNobodyHasIdentifiedIsRefused(t *testing.T) {
	t.Parallel()
	mux, called := http.NewServeMux(), false
	api := humago.New(mux, huma.DefaultConfig("muster", "1"))
	api.UseMiddleware(rights.Gate{}.Middleware)
	for _, path := range []string{"/v1/health", "/v1/hosts"} {
		huma.Get(api, path, func(context.Context, *struct{}) (*struct{}, error) {
			called = true
			return nil, nil
		})
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusInternalServerError || called {
			t.Errorf("%s: %d %s, called: %v", path, w.Code, w.Body, called)
		}
	}
}
