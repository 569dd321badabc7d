package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"muster/fleet"
	"muster/jobs"
)

// errNewer is wrapped by errors about records with fields that this muster does not know. Leaving
// such a field out could lift a limit that it stands for, so the record is refused.
var errNewer = errors.New("a newer muster made it: run that one here, too")

// ReadSpec reads the spec of a task. It refuses a spec that has more than this muster knows.
func ReadSpec(text string) (spec jobs.Spec, err error) {
	return spec, Strictly(text, &spec)
}

// readHost reads the record of a host. It refuses a record that has more than this muster knows.
func readHost(text string) (*fleet.Host, error) {
	h := new(fleet.Host)
	if err := Strictly(text, h); err != nil {
		return nil, err
	}
	return h, nil
}

// Strictly decodes one JSON value into a pointer. It refuses fields that the value does not have.
func Strictly(text string, into any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		// The decoder has no error of its own for that.
		if strings.Contains(err.Error(), "unknown field") {
			return fmt.Errorf("%w (%s)", errNewer, strings.TrimPrefix(err.Error(), "json: "))
		}
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind its JSON")
	}
	return nil
}
