package owned

// Admitted has the immutable fields of a live object that the API server stored with another value than the desired one, because an
// admission plug-in changed them when the object was created: for example a node selector that a webhook has extended. An apply of the
// object sends these fields with their live values. Both trees are decoded JSON.
type Admitted struct {
	Values map[string]any // the live values of these fields
	Wish   map[string]any // the values that were desired when these fields were found; if the desired value of a field changes, the field is not sent with its live value any more
}
