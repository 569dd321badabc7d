package steward

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"muster/fleet"
	"muster/internal/files"
	"muster/internal/proc"
	"muster/trust"
)

// keptMax bounds a file of the steward.
const keptMax = 64 << 10

// readOrder returns the order that the node has believed last; nil: none. It was believed when it
// was kept, and the folder belongs to the node.
func readOrder(dir, node string) (*trust.NodeOrder, error) {
	text, err := files.Read(orderFile(dir), keptMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o, err := trust.ReadNodeOrder(string(text), node, "", nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; remove the file, and give the order again", orderFile(dir), err)
	}
	return o, nil
}

func keepOrder(dir, text string) error { return keep(dir, orderFile(dir), text) }

// readZones returns the zones for which the node stood in at last.
func readZones(dir string) ([]string, error) {
	text, err := files.Read(zonesFile(dir), keptMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	zones := strings.Fields(string(text))
	for _, zone := range zones {
		if bad := fleet.CheckZone(zone); bad != nil {
			return nil, fmt.Errorf("%s: %w; remove the file", zonesFile(dir), bad)
		}
	}
	return zones, err
}

func keepZones(dir string, zones []string) error {
	return keep(dir, zonesFile(dir), strings.Join(zones, "\n")+"\n")
}

// keep puts a text in the place of a file at once.
func keep(dir, path, text string) error {
	if err := proc.OwnDir(dir); err != nil {
		return err
	}
	f, err := os.OpenFile(path+".next", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".next", path)
}
