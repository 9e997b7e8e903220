// A Dockerfile comes from anywhere, and the API reads it on its own thread. These limits bound the time and the memory that takes.

/** Characters of a Dockerfile. Real ones stay below a tenth of this. */
export const MAX_TEXT_LENGTH = 1_000_000;
/** Instructions of a Dockerfile. Each step becomes a layer, and a sandbox can mount a few hundred. */
export const MAX_INSTRUCTIONS = 1_000;
/** Problems that one error reports. More would not be read. */
export const MAX_PROBLEMS = 20;
/** Characters of a variable's value. Without this limit `ENV A=$A$A` doubles a value with each line. */
export const MAX_VALUE_LENGTH = 65_536;
/** Characters that all variables of a Dockerfile may expand to, together. */
export const MAX_EXPANDED_LENGTH = 4_000_000;
/** Characters of a value and of a pattern in `${name#pattern}` and its like. */
export const MAX_MATCHED_LENGTH = 512;
export const MAX_PATTERN_LENGTH = 64;
/** Comparisons of all patterns of a Dockerfile: about a second. Replacing one pattern in a path of 60 characters takes 40,000. */
export const MAX_COMPARISONS = 20_000_000;
/** Bytes of a command, which is one argument of bash: Linux refuses one of 128 KiB. */
export const MAX_COMMAND_BYTES = 120_000;
