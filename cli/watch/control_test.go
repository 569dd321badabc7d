package watch

import (
	"testing"

	"muster/jobs"
)

func TestEventsOfOrdersAreReadable(t *testing.T) {
	t.Parallel()
	for want, h := range map[string]jobs.Happening{
		"-  default    halt      all  halted by bob: fire\n": {Zone: "default", Event: "halt", Object: "all",
			Detail: map[string]any{"note": "halted by bob: fire"}},
		"-  z2         pause-customer acme  paused by a\\x1b  {\"moved\":3}\n": {Zone: "z2", Event: "pause-customer",
			Object: "acme", Detail: map[string]any{"note": "paused by a\x1b", "moved": 3}},
		"-  z2         end       x  {\"note\":7}\n": {Zone: "z2", Event: "end", Object: "x",
			Detail: map[string]any{"note": 7}},
	} {
		if got := EventLine(h); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
