package topology

import "strings"

// Without escaping the separator, different localities could end up with the same name.
var localityEscaper = strings.NewReplacer("%", "%25", "/", "%2F")

// LocalityName returns the name of a locality in paths, configurations and messages:
// region/zone/sub_zone, e.g. "us-east/a". We percent-encode "%" and "/" in the fields and cut off
// trailing slashes. If all fields are empty, it's NoLocality.
func LocalityName(region, zone, subZone string) string {
	escape := localityEscaper.Replace
	name := strings.TrimRight(strings.ToValidUTF8(escape(region)+"/"+escape(zone)+"/"+escape(subZone), "\uFFFD"), "/")
	if name == "" {
		return NoLocality
	}
	return name
}

const NoLocality = "/"
