# Trees of rpart's method "exp", as JSON: Rscript rpart.R > rpart.json (rpart 4.1, R 4.2).
# Complete rows of three sets of the package survival: of each its columns, the last two being time
# and event, and of trees with leaves of 7 and of 20 rows or more, by number of node, the feature
# (-1 in a leaf), the cut and the number of the child of the rows below the cut.
library(rpart)
library(survival)
sets <- list(
  lung = lung[c(
    "age", "sex", "ph.ecog", "ph.karno", "pat.karno", "meal.cal", "wt.loss", "time", "status"
  )],
  veteran = veteran[c("trt", "karno", "diagtime", "age", "prior", "time", "status")],
  gbsg = gbsg[c(
    "age", "meno", "size", "grade", "nodes", "pgr", "er", "hormon", "rfstime", "status"
  )]
)
sets$lung$status <- sets$lung$status - 1

list_of <- function(x) {
  paste0("[", paste(format(x, digits = 15, trim = TRUE), collapse = ", "), "]")
}
tree_of <- function(data, rows) {
  tree <- rpart(
    Surv(time, event) ~ ., data, method = "exp", parms = list(shrink = 0), cp = -1, xval = 0,
    minbucket = rows, minsplit = 2 * rows, maxdepth = 30, maxcompete = 0, maxsurrogate = 0
  )
  inner <- tree$frame$var != "<leaf>"
  node <- as.numeric(rownames(tree$frame))
  feature <- cut <- below <- rep(-1, length(node))
  splits <- tree$splits[seq_len(sum(inner)), , drop = FALSE]
  feature[inner] <- match(tree$frame$var[inner], names(data)) - 1
  cut[inner] <- splits[, "index"]
  below[inner] <- 2 * node[inner] + (splits[, "ncat"] > 0)
  values <- lapply(list(node, feature, cut, below), list_of)
  paste0('{"rows": ', rows, ', "node": ', values[1], ',\n"feature": ', values[2], ',\n"cut": ',
    values[3], ',\n"below": ', values[4], "}")
}
texts <- sapply(names(sets), function(name) {
  data <- na.omit(sets[[name]])
  names(data)[ncol(data) - 1:0] <- c("time", "event")
  columns <- paste(sapply(data, list_of), collapse = ",\n")
  trees <- paste(sapply(c(7, 20), tree_of, data = data), collapse = ",\n")
  paste0('"', name, '": {"columns": [', columns, '],\n"trees": [', trees, "]}")
})
cat("{", paste(texts, collapse = ",\n"), "}\n", sep = "")
