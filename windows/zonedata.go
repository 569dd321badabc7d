package windows

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"io"
	"sync"
	"time"
	_ "time/tzdata" // for the reader's zone: the standard library looks up TZ
)

// The time zone database is part of the binary, and no other is asked. The standard library
// prefers that of the machine (ZONEINFO, /usr/share/zoneinfo) to the one of time/tzdata: two
// servers that were updated at other times would put one window at two times.
//
// zoneinfo.zip is the one of the Go toolchain, with the links and the history of all zones. To
// take a newer one:
//
//	cp "$(go env GOROOT)/lib/time/zoneinfo.zip" windows/zoneinfo.zip
//	grep ^DATA "$(go env GOROOT)/lib/time/update.bash"
//
//go:embed zoneinfo.zip
var zoneData []byte

// ZoneData is the version of the time zone database in this binary. A test checks it.
const ZoneData = "2025c"

// zoneFiles opens the database. It is a part of this binary; if it cannot be read, no zone is
// known, and each zone is refused by its name.
var zoneFiles = sync.OnceValues(func() (*zip.Reader, error) {
	return zip.NewReader(bytes.NewReader(zoneData), int64(len(zoneData)))
})

// loadLocation returns the zone of a name from the database of this binary.
func loadLocation(name string) (*time.Location, error) {
	files, err := zoneFiles()
	if err != nil {
		return nil, err
	}
	data, err := readAll(files, name)
	if err != nil {
		return nil, err
	}
	return time.LoadLocationFromTZData(name, data)
}

func readAll(files *zip.Reader, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
