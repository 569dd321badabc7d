package attempt

import (
	"testing"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
)

func TestWhichMarkersCount(t *testing.T) {
	t.Parallel()
	g := jobs.Grant{Token: 1000, Host: &fleet.Host{Group: "g"}}
	for _, test := range []struct {
		until int64
		fate  jobs.Standing
		want  bool
	}{
		{1001, jobs.Standing{}, true},
		{1000, jobs.Standing{}, false}, // a day later
		{1001, jobs.Standing{Cleared: 500}, true},
		{1001, jobs.Standing{Cleared: 501}, false},
		{900, jobs.Standing{State: jobs.Running}, true},
		{900, jobs.Standing{State: jobs.Running, Cleared: 501}, true},
		{900, jobs.Standing{State: jobs.Retry}, true},
		{1001, jobs.Standing{State: jobs.Ended, Outcome: jobs.Cancelled}, false},
		{900, jobs.Standing{State: jobs.Ended, Outcome: jobs.Unknown}, true},
		{900, jobs.Standing{State: jobs.Ended, Outcome: jobs.Unknown, Cleared: 501}, false},
	} {
		why := counts(remote.Marked{Token: 500, Until: test.until}, test.fate, g)
		if (why != "") != test.want {
			t.Errorf("until %d, %+v: %q", test.until, test.fate, why)
		}
	}
}
