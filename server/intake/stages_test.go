package intake

import (
	"context"
	"errors"
	"testing"

	"muster/server/fault"
)

func TestARequestGoesNoFurtherThanItsAnswer(t *testing.T) {
	broken := errors.New("redis is away")
	for _, c := range []struct {
		name string
		ends error // of the second of three stages
		ran  int
		want error
	}{
		{"all stages pass", nil, 3, nil},
		{"a stage answers", errAnswered, 2, nil},
		{"a stage fails", broken, 2, broken},
	} {
		ran := 0
		next := func(err error) stage {
			return func(context.Context) error {
				ran++
				return err
			}
		}
		err := through(t.Context(), next(nil), next(c.ends), next(nil))
		if ran != c.ran || !errors.Is(err, c.want) {
			t.Errorf("%s: %d stages ran and returned %v, want %d and %v", c.name, ran, err, c.ran, c.want)
		}
	}
}

// An error of Redis goes first: whether there are more mistakes is not known then.
func TestAnErrorOfRedisGoesBeforeMistakes(t *testing.T) {
	broken := errors.New("redis is away")
	wrong := []error{fault.At("body.on", "no host")}
	if err := refuse(wrong, broken); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	var e *fault.Error
	if err := refuse(wrong, nil); !errors.As(err, &e) || e.Kind != fault.Refused || len(e.Mistakes) != 1 {
		t.Errorf("got %#v, want a refusal with one mistake", err)
	}
	if err := refuse(nil, nil); err != nil {
		t.Errorf("no mistake is %v", err)
	}
}
