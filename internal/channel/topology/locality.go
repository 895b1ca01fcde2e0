package topology

import "strings"

// We escape the separator, so that different localities have different names.
var localityEscaper = strings.NewReplacer("%", "%25", "/", "%2F")

// LocalityName returns the name of a locality in paths, configurations and messages:
// region/zone/sub_zone, such as "us-east/a". "%" and "/" in a field are percent-encoded, and
// trailing slashes are removed. If all fields are empty, the name is NoLocality.
func LocalityName(region, zone, subZone string) string {
	escape := localityEscaper.Replace
	name := strings.TrimRight(strings.ToValidUTF8(escape(region)+"/"+escape(zone)+"/"+escape(subZone), "\uFFFD"), "/")
	if name == "" {
		return NoLocality
	}
	return name
}

const NoLocality = "/"
