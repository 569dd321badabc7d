package tidy

import (
	"regexp"
	"strconv"
	"strings"
)

const (
	packageHard = 2500 // lines that are not tests
	folderMax   = 25   // files that are not tests
)

// roomRules hold the map of the house against the house.
var roomRules = []rule{{"rooms in ARCHITECTURE", checkRooms}}

func packageLines(t *tree) []measure {
	return eachPackage(t, measure{limit: packageHard, unit: "lines that are not tests",
		advice: "every private name is in reach of every line; a part of it wants to be a room"},
		func(f *file) int { return countLines(f.text) })
}

func folderFiles(t *tree) []measure {
	return eachPackage(t, measure{limit: folderMax, unit: "files that are not tests",
		advice: "they are chapters, not rooms; those with a prefix in common want a folder"},
		func(f *file) int { return 1 })
}

// eachPackage adds up a value of the files of each package that are not tests.
func eachPackage(t *tree, m measure, value func(*file) int) []measure {
	var found []measure
	for dir, files := range t.packages() {
		m.subject, m.file, m.value = dir, files[0], 0
		for _, f := range files {
			if !f.isTest() {
				m.value += value(f)
			}
		}
		found = append(found, m)
	}
	return found
}

const architecture = "docs/ARCHITECTURE.md"

var (
	roomRow  = regexp.MustCompile(`^\| (-?\d+|–) \| (.*?) \|`)
	roomName = regexp.MustCompile("`([^`]+)`")
)

// checkRooms compares the rooms of ARCHITECTURE and their floors with the tree, both ways.
func checkRooms(t *tree) []mistake {
	page := &file{path: architecture}
	told := map[string]int{} // room to line
	var found []mistake
	for i, line := range strings.Split(t.text(architecture), "\n") {
		m := roomRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, name := range roomName.FindAllStringSubmatch(m[2], -1) {
			dir := name[1]
			told[dir] = i + 1
			floor, ok := floors[dir]
			switch {
			case !t.isPackage(dir):
				found = append(found, page.atLine(i+1, dir, "there is no such room, so whoever follows the map "+
					"gets lost: say where it is now"))
			case ok && floor != atticFloor && m[1] != strconv.Itoa(floor):
				found = append(found, page.atLine(i+1, dir, "the page says floor %s, the table of floors in "+
					"internal/tidy says %d: correct the one that is wrong", m[1], floor))
			}
		}
	}
	for dir, files := range t.packages() {
		if told[dir] == 0 {
			found = append(found, files[0].atLine(0, dir, "%s does not know this room, so nobody finds it: "+
				"give it a row that says what it does", architecture))
		}
	}
	return found
}

func (t *tree) isPackage(dir string) bool {
	for known := range t.packages() {
		if known == dir {
			return true
		}
	}
	return false
}
