"""How text is read, in one place for every check: signs (`normalise`), words (`words`), their forms (`stems`),
sentences (`sentences`), what a word is worth as a sign of a subject (`terms`), which words carry a value
(`value_words`), and where a quotation stands (`align`).

A check may read more or less closely than another, but it chooses among what is here and has no reading of its own.
"""
