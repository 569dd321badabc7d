package keys

import (
	"fmt"
	"slices"
	"strings"

	"muster/fleet"
)

// User is a user of Redis, as `muster acl` prints it and etc/users.acl has it.
type User struct {
	Name  string   `json:"name"`
	For   string   `json:"for"`
	Zones []string `json:"zones,omitempty"` // zones whose keys it may use; none: all
	Rules []string `json:"rules"`           // for ACL SETUSER, without a password
}

// userPrefix begins the names of users.
const userPrefix = "muster-"

// NodeUser returns the name of the user for the nodes of one zone.
func NodeUser(zone string) string { return userPrefix + string(RoleNode) + "-" + zone }

// adminRules let people and monitoring read all data and change nothing.
const adminRules = "%R~" + Prefix + "* resetchannels -@all +@read -@dangerous +ping +info +time " +
	"+select +slowlog|get +slowlog|len +latency|latest +latency|history +client|list +client|id " +
	"+memory|usage +acl|log +acl|whoami +cluster|slots +cluster|info"

// Users returns the users of an installation with these zones: one for servers, one for the nodes
// of each zone, and one for people. If together is not empty, it is the name of one more user, for
// nodes that serve all the zones.
func Users(zones []string, together string) ([]User, error) {
	if err := checkZones(zones); err != nil {
		return nil, err
	}
	list := []User{{userPrefix + string(RoleServer), "muster server, muster up", nil,
		RoleServer.rules(nil)}}
	node := func(name string, zones []string) {
		list = append(list, User{name, "muster master and its children", zones, RoleNode.rules(zones)})
	}
	if together != "" {
		node(together, zones)
	} else {
		for _, zone := range zones {
			node(NodeUser(zone), []string{zone})
		}
	}
	return append(list, User{userPrefix + "admin", "people, monitoring", nil,
		strings.Fields("sanitize-payload resetkeys " + adminRules)}), nil
}

func checkZones(zones []string) error {
	for i, zone := range zones {
		if err := fleet.CheckZone(zone); err != nil {
			return fmt.Errorf("zone: %w", err)
		}
		if slices.Contains(zones[:i], zone) {
			return fmt.Errorf("zone %s is named twice: name each once", zone)
		}
	}
	return nil
}

// Line returns the user as a line of an ACL file. Nobody can log in as this user before it gets a
// password.
func (u User) Line() string {
	return "user " + u.Name + " off resetpass " + strings.Join(u.Rules, " ")
}

// DefaultUser is the line of an ACL file for Redis's default user. It is off, so nobody logs in as
// it. It still may do everything, because Redis reads its append-only file with the rights of this
// user: without them Redis 7.0 starts, and has skipped everything that scripts wrote.
const DefaultUser = "user default off resetpass ~* &* +@all"

// Order returns the command that gives the user its rules in a running Redis. The command changes
// neither the password nor whether the user is on; a new user is off.
func (u User) Order() string { return "ACL SETUSER " + u.Name + " " + strings.Join(u.Rules, " ") }
