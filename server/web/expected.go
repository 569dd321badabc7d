package web

import (
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
)

// Meets returns an error if another version, or another basis, is in force than the client expects.
func Meets(e api.Expected, what, basis string, version int64) error {
	if e.Version != 0 && e.Version != version {
		return huma.Error409Conflict(fmt.Sprintf("version %d is in force, and you expect %d: nothing "+
			"was changed; look with --check what would change now", version, e.Version))
	}
	if e.Basis != "" && e.Basis != basis {
		return huma.Error409Conflict("somebody else has just changed " + what + " that these files are " +
			"about: nothing was changed; look with --check what would change now, and apply again")
	}
	return nil
}
