package server_test

import (
	"strings"
	"testing"

	"muster/api"
	"muster/jobs"
)

// An order to open a wave names it: given twice it opens one, and none is passed over.
func TestAnOrderForAWaveOpensNoOther(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	body := run("fw001,fw002")
	body.Rollout = &jobs.RolloutAsk{Stages: jobs.Stages{Waves: []string{"1", "100%"}, Gate: true}}
	id := string(w.submit(body).Task)
	next := func(wave int, status int, words string) (did jobs.Rolled) {
		t.Helper()
		var p problem
		ask := api.NextRequest{OrderRequest: why("it looks well"), Wave: wave}
		if status == 200 {
			w.call("POST", "/v1/tasks/"+id+"/rollout/next", ask, &did)
			if did.Wave != wave {
				t.Errorf("wave %d: %+v", wave, did)
			}
			return did
		}
		res := w.call("POST", "/v1/tasks/"+id+"/rollout/next", ask, &p)
		if res.StatusCode != status || !strings.Contains(p.words(), words) {
			t.Errorf("wave %d: %s %s", wave, res.Status, p.words())
		}
		return did
	}
	next(3, 422, "body.wave: there is no wave 3")
	next(-1, 422, "body.wave")
	if did := next(1, 200, ""); !did.Already || did.Early != "" {
		t.Errorf("the first one: %+v", did)
	}
	if did := next(2, 200, ""); !did.Already || !strings.Contains(did.Early, "wave 1 of 2 is not over yet") {
		t.Errorf("the second one, too early: %+v", did)
	}
}
