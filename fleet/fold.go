package fleet

import (
	"slices"
	"strings"
)

// Fold abbreviates a list of host names: fw001 to fw300 and vpn1 become
// "fw[001-300],vpn1". Repeated names count once. ParseSelector reads the result as
// the same names.
//
// At most one number of each name becomes part of a range: Fold picks the number in
// which it differs from the largest count of otherwise equal names. Names that have
// nothing in common are listed, which takes no longer.
func Fold(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)

	alike := make(map[family]int, len(names))
	for _, name := range names {
		for _, m := range numbers(name) {
			alike[m.family]++
		}
	}
	var order []family
	members := map[family][]string{} // family → the numbers of its members
	for _, name := range names {
		best, number := family{before: name, alone: true}, ""
		for _, m := range numbers(name) {
			if alike[m.family] > max(1, alike[best]) {
				best, number = m.family, m.number
			}
		}
		if members[best] == nil {
			order = append(order, best)
		}
		members[best] = append(members[best], number)
	}

	var b strings.Builder
	for i, f := range order {
		if i > 0 {
			b.WriteByte(',')
		}
		f.write(&b, members[f])
	}
	return b.String()
}

// family is a set of names that differ in one number only, or a single name.
type family struct {
	before, after string
	alone         bool
}

// member is one way to place a name in a family: the family and the name's number in it.
type member struct {
	family
	number string
}

// numbersMax bounds how many numbers of a name are considered. If a name has more,
// the last ones count.
const numbersMax = 4

// numbers returns the numbers in a name, each with the family that it would belong to.
func numbers(name string) []member {
	var found []member
	for end := len(name); end > 0 && len(found) < numbersMax; {
		stop := strings.LastIndexAny(name[:end], "0123456789") + 1
		start := stop
		for start > 0 && '0' <= name[start-1] && name[start-1] <= '9' {
			start--
		}
		if n := stop - start; 0 < n && n <= digitsMax {
			f := family{before: name[:start], after: name[stop:]}
			found = append(found, member{f, name[start:stop]})
		}
		end = start
	}
	return found
}

// write appends the members of a family. It sorts the numbers in place.
func (f family) write(b *strings.Builder, numbers []string) {
	if len(numbers) == 1 {
		b.WriteString(f.before + numbers[0] + f.after)
		return
	}
	slices.SortFunc(numbers, func(x, y string) int {
		if len(x) != len(y) {
			return len(x) - len(y)
		}
		return strings.Compare(x, y)
	})
	b.WriteString(f.before + "[")
	for i := 0; i < len(numbers); {
		end := i + 1
		for end < len(numbers) && follows(numbers[i], numbers[end-1], numbers[end]) {
			end++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(numbers[i])
		if end-i > 1 {
			b.WriteString("-" + numbers[end-1])
		}
		i = end
	}
	b.WriteString("]" + f.after)
}

// follows reports whether number y comes directly after x in a range that starts
// with first. All numbers of a padded range have one length; in others 10 follows 9.
func follows(first, x, y string) bool {
	if len(y) != len(x) && (padded(first) || padded(y)) {
		return false
	}
	next := []byte(x)
	i := len(next) - 1
	for ; i >= 0 && next[i] == '9'; i-- {
		next[i] = '0'
	}
	if i < 0 {
		return y == "1"+string(next)
	}
	next[i]++
	return y == string(next)
}
