package ownedresources

import "regexp"

// exceptions are fields of which the API server knows better.
type exceptions []struct {
	at     *regexp.Regexp
	reason string
}

// unrepairable fields cannot be brought back by server-side apply, once they were changed or dropped.
var unrepairable = exceptions{
	{regexp.MustCompile(`/immutable$`), "the API never takes it back"},
	{regexp.MustCompile(`^/spec/ports/0/port$`), "a changed key makes a foreign item, and two ports would need names"},
	{regexp.MustCompile(`/volumeDevices/\d+/devicePath$`), "a changed key makes a foreign item, of our item's volume"},
	{regexp.MustCompile(`/containers/\d+/name$`), "a changed key makes a foreign container, with our host port"},
	{regexp.MustCompile(`/validationActions/\d+$`), "a foreign item excludes ours"},
	{regexp.MustCompile(`/(strategy|updateStrategy)(/type)?$`), "the default has parameters that ours must not have"},
	{regexp.MustCompile(`/volumes/\d+/\w+(/\w+)?$`), "a volume of no kind becomes an emptyDir"},
}

// undroppable fields do not go by being dropped.
var undroppable = exceptions{
	{regexp.MustCompile(`/serviceAccountName$`), "its older name, serviceAccount, which nobody sent, brings it back"},
	{regexp.MustCompile(`/dataSourceRef$`), "its older name, dataSource, which nobody sent, brings it back"},
	{regexp.MustCompile(`/targetCPUUtilizationPercentage$`), "an autoscaler in the older version keeps its metrics"},
	{regexp.MustCompile(`/updateStrategy(/\w+)*$`), "the default's parameters stay"},
	{regexp.MustCompile(`/ordinals(/start)?$`), "0 is not shown"},
}

func matches(e exceptions, at path) bool {
	for _, exception := range e {
		if exception.at.MatchString(at.String()) {
			return true
		}
	}
	return false
}
