package schedule

import (
	"strings"
	"time"
	_ "time/tzdata" // see doc.go: without it, every zone but UTC is unknown in a distroless image
)

// maxZone is longer than any name in the database; the longest has 30 characters.
const maxZone = 64

// loadZone follows CronJob's validation of spec.timeZone: Local is refused, since it is the operator's zone and not the user's.
func loadZone(name string) (*time.Location, error) {
	const remedy = `write a name of the IANA database, such as "Europe/Berlin" or "UTC"`
	valid := len(name) <= maxZone && !strings.EqualFold(name, "Local") &&
		// The system's database has these beside the names; the embedded one has not, and right counts leap seconds.
		!strings.HasPrefix(name, "posix/") && !strings.HasPrefix(name, "right/") &&
		strings.Trim(name, "/_+-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
	if valid {
		if location, err := time.LoadLocation(name); err == nil {
			return location, nil
		}
	}
	return nil, invalid("timeZone", " %s: there is no such zone; %s", quote(name), remedy)
}
